#include "CMusterAssets.h"

static const uint8_t index_html[] = {
#embed "page/index.html"
};
static const uint8_t style_css[] = {
#embed "page/style.css"
};
static const uint8_t tiles_js[] = {
#embed "page/tiles.js"
};
static const uint8_t app_js[] = {
#embed "page/app.js"
};
static const uint8_t leaving_js[] = {
#embed "page/leaving.js"
};
static const uint8_t stage_js[] = {
#embed "page/stage.js"
};
static const uint8_t people_js[] = {
#embed "page/people.js"
};
static const uint8_t chat_js[] = {
#embed "page/chat.js"
};
static const uint8_t worker_js[] = {
#embed "page/worker.js"
};

static const muster_asset assets[] = {
    {"/", "text/html; charset=utf-8", index_html, sizeof index_html},
    {"/style.css", "text/css; charset=utf-8", style_css, sizeof style_css},
    {"/tiles.js", "text/javascript; charset=utf-8", tiles_js, sizeof tiles_js},
    {"/app.js", "text/javascript; charset=utf-8", app_js, sizeof app_js},
    {"/leaving.js", "text/javascript; charset=utf-8", leaving_js, sizeof leaving_js},
    {"/stage.js", "text/javascript; charset=utf-8", stage_js, sizeof stage_js},
    {"/people.js", "text/javascript; charset=utf-8", people_js, sizeof people_js},
    {"/chat.js", "text/javascript; charset=utf-8", chat_js, sizeof chat_js},
    {"/worker.js", "text/javascript; charset=utf-8", worker_js, sizeof worker_js},
};

size_t muster_asset_count(void) { return sizeof assets / sizeof assets[0]; }

muster_asset muster_asset_at(size_t index) {
  return index < muster_asset_count() ? assets[index] : (muster_asset){};
}
