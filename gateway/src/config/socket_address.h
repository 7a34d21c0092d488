// Addresses to listen on: numeric, "192.0.2.1:3260", "[2001:db8::1]:3260". Names are not looked
// up: what a gateway binds must not depend on a name server being there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sluice::config {

struct SocketAddress {
  std::string host;  // without brackets
  uint16_t port = 0;
  bool v6 = false;
  bool wildcard() const { return host == "0.0.0.0" || host == "::"; }
  bool loopback() const { return host == "::1" || host.rfind("127.", 0) == 0; }
  std::string text() const;
};

// `default_port` serves an address without one.
Result<SocketAddress> parse_socket_address(std::string_view text, uint16_t default_port);

}  // namespace sluice::config
