#include "config/socket_address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace sluice::config {
namespace {

// The canonical text of a numeric address; empty when it isn't one.
std::string canonical(int family, const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> raw;
  std::array<char, INET6_ADDRSTRLEN> text;
  if (inet_pton(family, host.c_str(), raw.data()) != 1) return {};
  return inet_ntop(family, raw.data(), text.data(), text.size());
}

}  // namespace

std::string SocketAddress::text() const {
  return (v6 ? "[" + host + "]:" : host + ":") + std::to_string(port);
}

Result<SocketAddress> parse_socket_address(std::string_view text, uint16_t default_port) {
  const Error malformed{"'" + std::string(text) +
                        "' is not a numeric address and port; write 192.0.2.1:3260 or "
                        "[2001:db8::1]:3260"};
  SocketAddress address;
  address.port = default_port;
  std::string_view port;
  bool has_port = false;
  if (!text.empty() && text.front() == '[') {
    const size_t close = text.find(']');
    if (close == std::string_view::npos) return malformed;
    address.v6 = true;
    address.host = std::string(text.substr(1, close - 1));
    const std::string_view rest = text.substr(close + 1);
    if (!rest.empty() && rest.front() != ':') return malformed;
    has_port = !rest.empty();
    if (has_port) port = rest.substr(1);
  } else if (std::count(text.begin(), text.end(), ':') > 1) {
    address.v6 = true;  // a bare IPv6 address: no port can follow
    address.host = std::string(text);
  } else {
    const size_t colon = text.find(':');
    address.host = std::string(text.substr(0, colon));
    has_port = colon != std::string_view::npos;
    if (has_port) port = text.substr(colon + 1);
  }
  address.host = canonical(address.v6 ? AF_INET6 : AF_INET, address.host);
  if (address.host.empty()) return malformed;
  if (has_port) {
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
    if (error != std::errc() || end != port.data() + port.size()) return malformed;
  }
  return address;
}

}  // namespace sluice::config
