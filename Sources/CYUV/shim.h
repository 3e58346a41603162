#pragma once
// Debian builds libyuv with JPEG; its header hides MJPGToI420 without this.
#define HAVE_JPEG 1
#include <libyuv.h>
