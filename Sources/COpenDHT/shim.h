#pragma once

// An OpenDHT node. GPL-3.0-or-later, so it is only built with the package trait DHT.
#include <opendht/opendht_c.h>
