#pragma once

// The store's file: channels, keys, signed entries.
#include <sqlite3.h>
