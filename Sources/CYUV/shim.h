#pragma once
// Debian builds libyuv with JPEG support; its header declares MJPGToI420 only with this macro.
#define HAVE_JPEG 1
#include <libyuv.h>
