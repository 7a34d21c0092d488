// Socket addresses as text: numeric, "192.0.2.1:3260", "[2001:db8::1]:3260". Names are not
// resolved, so that binding does not depend on a name server.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sluice {

struct SocketAddress {
  std::string host;  // canonical, without brackets
  uint16_t port = 0;
  bool v6 = false;
  bool wildcard() const { return host == "0.0.0.0" || host == "::"; }
  bool loopback() const { return host == "::1" || host.rfind("127.", 0) == 0; }
  std::string text() const;
};

// `default_port` is used for an address without a port.
Result<SocketAddress> parse_socket_address(std::string_view text, uint16_t default_port);

// In the form for bind() and connect().
struct KernelAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};
KernelAddress kernel_address(const SocketAddress& address);
// "unknown" for other address families. An IPv4 peer of a dual-stack socket is written as IPv4, not
// as ::ffff:192.0.2.1.
std::string kernel_address_text(const sockaddr_storage& address);

// The part of an address that one party is assumed to control: all 4 bytes of an IPv4 address (also
// on a dual-stack socket), the upper 8 bytes of an IPv6 address. Empty for other address families.
std::string kernel_address_network(const sockaddr_storage& address);

// The network of an address in the form "host:port"; empty for other text.
std::string address_network(std::string_view address);

// The two ends of a socket; "unknown" if an end does not exist.
std::string local_address(int fd);
std::string peer_address(int fd);
std::string peer_network(int fd);  // of the remote end

}  // namespace sluice
