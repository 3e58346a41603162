#pragma once

// Ports mapped by gateways that speak NAT-PMP.
#include <natpmp.h>
