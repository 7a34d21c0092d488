// Addresses of sockets as text: numeric, "192.0.2.1:3260", "[2001:db8::1]:3260". Names are not
// looked up: what a gateway binds must not depend on a name server being there.
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

// `default_port` serves an address without one.
Result<SocketAddress> parse_socket_address(std::string_view text, uint16_t default_port);

// As bind() and connect() take it.
struct KernelAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};
KernelAddress kernel_address(const SocketAddress& address);
// "unknown" for what is no internet address. What came by IPv4 to a dual-stack socket is written
// as IPv4 (::ffff:192.0.2.1 is how the kernel has it).
std::string kernel_address_text(const sockaddr_storage& address);

// The network part of an address, which one party is assumed to control: all 4 bytes of an IPv4
// address (also if a dual-stack socket accepted it), the upper 8 bytes of an IPv6 address. Empty
// for other address families.
std::string kernel_address_network(const sockaddr_storage& address);

// The network of an address in the form "host:port"; empty for text in another form.
std::string address_network(std::string_view address);

// The two ends of a socket; "unknown" for one it doesn't have.
std::string local_address(int fd);
std::string peer_address(int fd);
std::string peer_network(int fd);  // of the other end

}  // namespace sluice
