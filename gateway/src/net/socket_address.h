// Text to socket addresses and back: "192.0.2.1:3260", "[2001:db8::1]:3260".
#pragma once

#include <sys/socket.h>

#include <string>

#include "base/result.h"

namespace sluice::net {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

// Numeric addresses only: a portal must not depend on a resolver. Error names what is wrong.
Result<SocketAddress> parse_address(const std::string& text);
std::string format_address(const sockaddr_storage& address);
std::string local_address(int fd);
std::string peer_address(int fd);

}  // namespace sluice::net
