#pragma once

// A node of a distributed hash table. GPL-3.0-or-later, so it is built with the trait DHT only.
#include <opendht/opendht_c.h>
