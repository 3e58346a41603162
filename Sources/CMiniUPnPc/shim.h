#pragma once

// Port mapping by UPnP Internet Gateway Devices.
#include <miniupnpc/miniupnpc.h>
#include <miniupnpc/upnpcommands.h>
