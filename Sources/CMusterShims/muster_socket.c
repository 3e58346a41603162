#include "muster_socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef SOL_NETLINK
#define SOL_NETLINK 270
#endif

static void enlarge(int fd, int option, int forced_option, int bytes) {
  // The FORCE options exceed the system's limit but need CAP_NET_ADMIN.
  if (setsockopt(fd, SOL_SOCKET, forced_option, &bytes, sizeof bytes) != 0)
    setsockopt(fd, SOL_SOCKET, option, &bytes, sizeof bytes);
}

static void set_int(int fd, int level, int option, int value) {
  setsockopt(fd, level, option, &value, sizeof value);
}

int muster_udp_open(int family, const void *sockaddr, unsigned sockaddr_len, int reuse, int v6only,
                    int buffer_bytes) {
  int fd = socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_UDP);
  if (fd < 0) return -errno;
  set_int(fd, SOL_SOCKET, SO_BROADCAST, 1);
  set_int(fd, SOL_SOCKET, SO_TIMESTAMPNS, 1);
  if (reuse) set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  if (buffer_bytes > 0) {
    enlarge(fd, SO_RCVBUF, SO_RCVBUFFORCE, buffer_bytes);
    enlarge(fd, SO_SNDBUF, SO_SNDBUFFORCE, buffer_bytes);
  }
  // PROBE sets don't-fragment but ignores the cached path MTU (ip(7)), so that a forged ICMP
  // "packet too big" cannot stall the socket.
  if (family == AF_INET6) {
    set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, v6only);
    set_int(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
    set_int(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
    set_int(fd, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, 1);
    set_int(fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, 1);
    // Limits reception to groups that this socket joined, excluding those of other sockets on the
    // host.
    set_int(fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0);
  }
  if (family == AF_INET || !v6only) {
    set_int(fd, IPPROTO_IP, IP_RECVTOS, 1);
    set_int(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
    set_int(fd, IPPROTO_IP, IP_MULTICAST_LOOP, 1);
    set_int(fd, IPPROTO_IP, IP_MULTICAST_TTL, 1);
    set_int(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0);
  }
  if (bind(fd, sockaddr, sockaddr_len) != 0) {
    int error = errno;
    close(fd);
    return -error;
  }
  return fd;
}

int muster_join_group(int fd, int family, const void *group_addr_bytes, unsigned interface_index) {
  int result;
  if (family == AF_INET6) {
    struct ipv6_mreq request = {.ipv6mr_interface = interface_index};
    memcpy(&request.ipv6mr_multiaddr, group_addr_bytes, 16);
    result = setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &request, sizeof request);
  } else {
    struct ip_mreqn request = {.imr_ifindex = (int)interface_index};
    memcpy(&request.imr_multiaddr, group_addr_bytes, 4);
    result = setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &request, sizeof request);
  }
  return result == 0 || errno == EADDRINUSE ? 0 : -errno;
}

// The most datagrams of one call; a busy call brings some tens of them in a turn of a busy node.
#define MOST_RECEIVED 32

static int64_t since_1970(const struct timespec *time) {
  return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

// Fills in what the control messages say; `now` is in nanoseconds since 1970.
static void fill_control(muster_datagram *out, struct msghdr *message, int64_t now) {
  for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header;
       header = CMSG_NXTHDR(message, header)) {
    if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_TIMESTAMPNS) {
      struct timespec time;
      memcpy(&time, CMSG_DATA(header), sizeof time);
      out->age = now - since_1970(&time);
    } else if (header->cmsg_level == IPPROTO_IP && header->cmsg_type == IP_TOS) {
      out->traffic_class = *CMSG_DATA(header);
    } else if (header->cmsg_level == IPPROTO_IPV6 && header->cmsg_type == IPV6_TCLASS) {
      int value;
      memcpy(&value, CMSG_DATA(header), sizeof value);
      out->traffic_class = (uint8_t)value;
    }
  }
}

// The space for the time of arrival, and for the type of service or the traffic class.
#define RECEIVED_CONTROL_BYTES (CMSG_SPACE(sizeof(struct timespec)) + CMSG_SPACE(sizeof(int)))

static void fill_source(muster_datagram *out, const struct sockaddr_storage *source) {
  out->family = source->ss_family;
  if (source->ss_family == AF_INET) {
    const struct sockaddr_in *v4 = (const void *)source;
    memcpy(out->host, &v4->sin_addr, 4);
    out->port = ntohs(v4->sin_port);
  } else if (source->ss_family == AF_INET6) {
    const struct sockaddr_in6 *v6 = (const void *)source;
    memcpy(out->host, &v6->sin6_addr, 16);
    out->port = ntohs(v6->sin6_port);
    out->zone = v6->sin6_scope_id;
  }
}

int muster_receive(int fd, void *buffer, unsigned size, muster_datagram *out, unsigned count) {
  struct sockaddr_storage sources[MOST_RECEIVED];
  struct iovec parts[MOST_RECEIVED];
  _Alignas(struct cmsghdr) char controls[MOST_RECEIVED][RECEIVED_CONTROL_BYTES];
  struct mmsghdr messages[MOST_RECEIVED];
  if (count > MOST_RECEIVED) count = MOST_RECEIVED;
  for (unsigned i = 0; i < count; i++) {
    parts[i] = (struct iovec){.iov_base = (char *)buffer + (size_t)i * size, .iov_len = size};
    messages[i] = (struct mmsghdr){.msg_hdr = {.msg_name = &sources[i],
                                               .msg_namelen = sizeof sources[i],
                                               .msg_iov = &parts[i],
                                               .msg_iovlen = 1,
                                               .msg_control = controls[i],
                                               .msg_controllen = sizeof controls[i]}};
  }
  int received;
  do received = recvmmsg(fd, messages, count, MSG_DONTWAIT, NULL);
  while (received < 0 && errno == EINTR);
  if (received < 0) return -errno;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  for (int i = 0; i < received; i++) {
    out[i] = (muster_datagram){.length = messages[i].msg_len};
    // The source is not known if the kernel gave none.
    if (messages[i].msg_hdr.msg_namelen > 0) fill_source(&out[i], &sources[i]);
    fill_control(&out[i], &messages[i].msg_hdr, since_1970(&now));
  }
  return received;
}

static int send_message(int fd, const struct msghdr *message) {
  ssize_t sent;
  do sent = sendmsg(fd, message, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent < 0 ? -errno : 0;
}

// The space for the packet information of either family, the segment size and the traffic class.
#define CONTROL_BYTES \
  (CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(uint16_t)) + CMSG_SPACE(sizeof(int)))

static void add_control(struct msghdr *message, int level, int type, const void *value,
                        size_t size) {
  struct cmsghdr *header = (void *)((char *)message->msg_control + message->msg_controllen);
  header->cmsg_level = level;
  header->cmsg_type = type;
  header->cmsg_len = CMSG_LEN(size);
  memcpy(CMSG_DATA(header), value, size);
  message->msg_controllen += CMSG_SPACE(size);
}

static void add_segment_size(struct msghdr *message, uint16_t segment) {
  if (segment) add_control(message, SOL_UDP, UDP_SEGMENT, &segment, sizeof segment);
}

static void add_traffic_class(struct msghdr *message, int level, int type, int traffic_class) {
  if (traffic_class) add_control(message, level, type, &traffic_class, sizeof traffic_class);
}

static int send_via_v4(int fd, const void *destination, unsigned short port, unsigned interface,
                       const void *source, struct iovec *data, uint16_t segment,
                       uint8_t traffic_class) {
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
  memcpy(&to.sin_addr, destination, 4);
  _Alignas(struct cmsghdr) char control[CONTROL_BYTES] = {0};
  struct msghdr message = {.msg_name = &to,
                           .msg_namelen = sizeof to,
                           .msg_iov = data,
                           .msg_iovlen = 1,
                           .msg_control = control};
  // A packet information with address 0 would override the address that the socket is bound to.
  if (source || interface != 0) {
    struct in_pktinfo info = {.ipi_ifindex = (int)interface};
    if (source) memcpy(&info.ipi_spec_dst, source, 4);
    add_control(&message, IPPROTO_IP, IP_PKTINFO, &info, sizeof info);
  }
  add_segment_size(&message, segment);
  add_traffic_class(&message, IPPROTO_IP, IP_TOS, traffic_class);
  return send_message(fd, &message);
}

static int send_via_v6(int fd, const void *destination, unsigned short port, unsigned interface,
                       const void *source, struct iovec *data, uint16_t segment,
                       uint8_t traffic_class) {
  struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
  memcpy(&to.sin6_addr, destination, 16);
  if (IN6_IS_ADDR_LINKLOCAL(&to.sin6_addr) || IN6_IS_ADDR_MC_LINKLOCAL(&to.sin6_addr))
    to.sin6_scope_id = interface;
  _Alignas(struct cmsghdr) char control[CONTROL_BYTES] = {0};
  struct msghdr message = {.msg_name = &to,
                           .msg_namelen = sizeof to,
                           .msg_iov = data,
                           .msg_iovlen = 1,
                           .msg_control = control};
  struct in6_pktinfo info = {.ipi6_ifindex = interface};
  if (source) memcpy(&info.ipi6_addr, source, 16);
  add_control(&message, IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof info);
  add_segment_size(&message, segment);
  add_traffic_class(&message, IPPROTO_IPV6, IPV6_TCLASS, traffic_class);
  return send_message(fd, &message);
}

int muster_send_via(int fd, int family, const void *dest_addr_bytes, unsigned short port,
                    unsigned interface_index, const void *source_addr_bytes_or_null,
                    const void *data, unsigned length, unsigned short segment_bytes,
                    uint8_t traffic_class) {
  struct iovec part = {.iov_base = (void *)data, .iov_len = length};
  return family == AF_INET6
             ? send_via_v6(fd, dest_addr_bytes, port, interface_index, source_addr_bytes_or_null,
                           &part, segment_bytes, traffic_class)
             : send_via_v4(fd, dest_addr_bytes, port, interface_index, source_addr_bytes_or_null,
                           &part, segment_bytes, traffic_class);
}

static uint32_t prefix_length(const uint8_t *mask, int bytes) {
  uint32_t length = 0;
  for (int i = 0; i < bytes; i++) length += (uint32_t)__builtin_popcount(mask[i]);
  return length;
}

static uint32_t interface_mtu(int fd, const char *name) {
  struct ifreq request = {0};
  snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
  return fd >= 0 && ioctl(fd, SIOCGIFMTU, &request) == 0 ? (uint32_t)request.ifr_mtu : 0;
}

static uint32_t interface_flags(unsigned flags) {
  return ((flags & IFF_UP) ? MUSTER_INTERFACE_UP : 0) |
         ((flags & IFF_LOOPBACK) ? MUSTER_INTERFACE_LOOPBACK : 0) |
         ((flags & IFF_MULTICAST) ? MUSTER_INTERFACE_MULTICAST : 0) |
         ((flags & IFF_BROADCAST) ? MUSTER_INTERFACE_BROADCAST : 0);
}

static void fill_v4(muster_interface *out, const struct ifaddrs *entry) {
  memcpy(out->address, &((const struct sockaddr_in *)entry->ifa_addr)->sin_addr, 4);
  if (entry->ifa_netmask)
    out->prefix_length = prefix_length(
        (const uint8_t *)&((const struct sockaddr_in *)entry->ifa_netmask)->sin_addr, 4);
  if ((entry->ifa_flags & IFF_BROADCAST) && entry->ifa_broadaddr)
    memcpy(out->broadcast, &((const struct sockaddr_in *)entry->ifa_broadaddr)->sin_addr, 4);
}

// getifaddrs does not report per-address flags; /proc/net/if_inet6 does, and only IPv6 has them.
static void fill_v6_flags(muster_interface *out) {
  FILE *file = fopen("/proc/net/if_inet6", "re");
  if (!file) return;
  char hex[33], text[33], device[17];
  unsigned index, prefix, scope, flags;
  for (int i = 0; i < 16; i++) snprintf(text + 2 * i, 3, "%02x", out->address[i]);
  while (fscanf(file, "%32s %x %x %x %x %16s", hex, &index, &prefix, &scope, &flags, device) == 6) {
    if (index != out->index || strcmp(hex, text) != 0) continue;
    out->is_deprecated = (flags & IFA_F_DEPRECATED) != 0;
    out->is_temporary = (flags & IFA_F_TEMPORARY) != 0;
    out->is_tentative = (flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED)) != 0;
  }
  fclose(file);
}

static void fill_v6(muster_interface *out, const struct ifaddrs *entry) {
  memcpy(out->address, &((const struct sockaddr_in6 *)entry->ifa_addr)->sin6_addr, 16);
  if (entry->ifa_netmask)
    out->prefix_length = prefix_length(
        (const uint8_t *)&((const struct sockaddr_in6 *)entry->ifa_netmask)->sin6_addr, 16);
  fill_v6_flags(out);
}

int muster_network_changes_open(void) {
  int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (fd < 0) return -errno;
  // Disables ENOBUFS errors, which would close the channel. Lost notifications are harmless,
  // because the interfaces are polled as well.
  set_int(fd, SOL_NETLINK, NETLINK_NO_ENOBUFS, 1);
  struct sockaddr_nl own = {.nl_family = AF_NETLINK,
                            .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR |
                                         RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE};
  if (bind(fd, (struct sockaddr *)&own, sizeof own) == 0) return fd;
  int failure = -errno;
  close(fd);
  return failure;
}

int muster_list_interfaces(muster_interface *out, int capacity) {
  struct ifaddrs *list;
  if (getifaddrs(&list) != 0) return -errno;
  int probe = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  int count = 0;
  for (struct ifaddrs *entry = list; entry && count < capacity; entry = entry->ifa_next) {
    if (!entry->ifa_addr || !(entry->ifa_flags & IFF_UP)) continue;
    int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    muster_interface *next = &out[count++];
    memset(next, 0, sizeof *next);
    // IPv4 alias labels ("eth0:1") are cut to the interface's name.
    snprintf(next->name, sizeof next->name, "%.*s", (int)strcspn(entry->ifa_name, ":"),
             entry->ifa_name);
    next->index = if_nametoindex(next->name);
    next->flags = interface_flags(entry->ifa_flags);
    next->family = family;
    next->mtu = interface_mtu(probe, next->name);
    if (family == AF_INET)
      fill_v4(next, entry);
    else
      fill_v6(next, entry);
  }
  if (probe >= 0) close(probe);
  freeifaddrs(list);
  return count;
}
