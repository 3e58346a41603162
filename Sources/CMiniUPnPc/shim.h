#pragma once

// Ports mapped by gateways that speak UPnP.
#include <miniupnpc/miniupnpc.h>
#include <miniupnpc/upnpcommands.h>
