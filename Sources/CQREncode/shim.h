#pragma once

// QR codes for invites in a terminal.
#include <qrencode.h>
