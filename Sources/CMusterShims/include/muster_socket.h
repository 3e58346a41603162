// UDP sockets with IP_PKTINFO and multicast membership, and the list of network interfaces. Every
// function returns 0 (or a descriptor or count) on success and -errno on failure.
#pragma once
#include <stdint.h>

#define MUSTER_INTERFACE_UP 1u
#define MUSTER_INTERFACE_LOOPBACK 2u
#define MUSTER_INTERFACE_MULTICAST 4u
#define MUSTER_INTERFACE_BROADCAST 8u

/// One address of a network interface.
typedef struct {
  char name[16];
  uint32_t index;
  /// A combination of MUSTER_INTERFACE_*.
  uint32_t flags;
  /// AF_INET or AF_INET6.
  int32_t family;
  /// 4 or 16 bytes in network order.
  uint8_t address[16];
  /// The IPv4 broadcast address in network order; 0.0.0.0 or the address itself if none was set.
  uint8_t broadcast[4];
  uint32_t prefix_length;
  /// The MTU in bytes.
  uint32_t mtu;
  /// 1 for an IPv6 address that is deprecated: not to be used for new communication (RFC 4862).
  uint8_t is_deprecated;
  /// 1 for a temporary IPv6 address (RFC 8981).
  uint8_t is_temporary;
  /// 1 for an IPv6 address whose duplicate address detection has not finished or has failed (RFC
  /// 4862).
  uint8_t is_tentative;
} muster_interface;

/// Opens and binds a non-blocking, close-on-exec UDP socket with broadcast permission and buffers
/// as close to `buffer_bytes` as the system permits (0: the default). Datagrams have don't-fragment
/// set and are sent regardless of the path MTU that the kernel has cached.
int muster_udp_open(int family, const void *sockaddr, unsigned sockaddr_len, int reuse, int v6only,
                    int buffer_bytes);

/// A datagram that was read.
typedef struct {
  /// The size in bytes.
  uint32_t length;
  /// The source: AF_INET or AF_INET6, 0 if unknown; 4 or 16 bytes in network order; the interface
  /// index that scopes a link-local address, else 0; the port in host order.
  int32_t family;
  uint8_t host[16];
  uint32_t zone;
  uint16_t port;
  /// The nanoseconds since the kernel received the datagram (SO_TIMESTAMPNS); 0 if it does not say.
  /// Negative or large if the machine's clock was set meanwhile.
  int64_t age;
  /// The IPv4 type of service or the IPv6 traffic class; 0 if unknown.
  uint8_t traffic_class;
} muster_datagram;

/// Reads the datagrams that wait at a socket, at most `count` and 32, each to its `size` bytes of
/// `buffer`; longer ones are cut off. Returns their number.
int muster_receive(int fd, void *buffer, unsigned size, muster_datagram *out, unsigned count);

/// Joins a multicast group on one interface; already being a member is success.
int muster_join_group(int fd, int family, const void *group_addr_bytes, unsigned interface_index);

/// Sends on interface `interface_index` (0: by routing) with the given source address (null: chosen
/// by the kernel). `dest_addr_bytes` is 4 or 16 bytes; `port` is in host order. With
/// `segment_bytes` above 0 the kernel splits `data` into datagrams of that size, the last one
/// shorter (UDP_SEGMENT, udp(7)); at most 64 of them. `traffic_class` above 0 is the type of
/// service (IP_TOS, ip(7)) or the traffic class (IPV6_TCLASS, RFC 3542).
int muster_send_via(int fd, int family, const void *dest_addr_bytes, unsigned short port,
                    unsigned interface_index, const void *source_addr_bytes_or_null,
                    const void *data, unsigned length, unsigned short segment_bytes,
                    uint8_t traffic_class);

/// Opens a socket that becomes readable when interfaces, addresses or routes change (rtnetlink(7));
/// returns -errno where netlink is not available.
int muster_network_changes_open(void);

/// Fills `out` with the addresses of interfaces that are up, in the kernel's order; returns the
/// count.
int muster_list_interfaces(muster_interface *out, int capacity);
