#pragma once

// Port mapping by NAT-PMP.
#include <natpmp.h>
