// UDP sockets as the network shell needs them: IP_PKTINFO, multicast membership, interfaces.
// Every function returns 0 (or a descriptor or count) on success and -errno on failure.
#pragma once
#include <stdint.h>

#define MUSTER_INTERFACE_UP 1u
#define MUSTER_INTERFACE_LOOPBACK 2u
#define MUSTER_INTERFACE_MULTICAST 4u
#define MUSTER_INTERFACE_BROADCAST 8u

/// One address of one interface.
typedef struct {
  char name[16];
  uint32_t index;
  uint32_t flags;
  /// AF_INET or AF_INET6.
  int32_t family;
  /// 4 or 16 bytes in network order.
  uint8_t address[16];
  /// IPv4 only, when `flags` has MUSTER_INTERFACE_BROADCAST.
  uint8_t broadcast[4];
  uint32_t prefix_length;
  uint32_t mtu;
  /// Of the address (IPv6): still usable, but not for anything new.
  uint8_t is_deprecated;
  /// Of the address (IPv6): a privacy address, replaced from time to time.
  uint8_t is_temporary;
  /// Of the address (IPv6): not yet checked for duplicates, or found to be one.
  uint8_t is_tentative;
} muster_interface;

/// A bound, non-blocking, close-on-exec UDP socket that may broadcast, with buffers as near to
/// `buffer_bytes` as permitted (0: leave them). Datagrams bear don't-fragment and are never held
/// back by the kernel's idea of the path MTU.
int muster_udp_open(int family, const void *sockaddr, unsigned sockaddr_len, int reuse, int v6only,
                    int buffer_bytes);

/// Joins a multicast group on one interface. Being a member already is success.
int muster_join_group(int fd, int family, const void *group_addr_bytes, unsigned interface_index);

/// Sends out of `interface_index` (0: as routed) with the given source address (null: the kernel's
/// choice). `dest_addr_bytes` is 4 or 16 bytes; `port` is in host order. With `segment_bytes` above 0
/// the kernel cuts `data` into datagrams of that size, the last one shorter (UDP_SEGMENT, udp(7)); at
/// most 64 of them. Returns 0 or a negative errno.
int muster_send_via(int fd, int family, const void *dest_addr_bytes, unsigned short port,
                    unsigned interface_index, const void *source_addr_bytes_or_null,
                    const void *data, unsigned length, unsigned short segment_bytes);

/// A socket that becomes readable when interfaces, addresses or routes change (rtnetlink(7));
/// negative errno where there is none to be had.
int muster_network_changes_open(void);

/// Fills `out` with the addresses of interfaces that are up, ordered as the kernel lists them.
int muster_list_interfaces(muster_interface *out, int capacity);
