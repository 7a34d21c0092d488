#include "base/socket_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace sluice {
namespace {

// The canonical text of a numeric address; empty when it isn't one.
std::string canonical(int family, const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> raw;
  std::array<char, INET6_ADDRSTRLEN> text;
  if (inet_pton(family, host.c_str(), raw.data()) != 1) return {};
  return inet_ntop(family, raw.data(), text.data(), text.size());
}

std::string end_of(int fd, int (*get)(int, sockaddr*, socklen_t*)) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (get(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "unknown";
  return kernel_address_text(address);
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

KernelAddress kernel_address(const SocketAddress& address) {
  KernelAddress out;
  if (address.v6) {
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&out.storage);
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(address.port);
    inet_pton(AF_INET6, address.host.c_str(), &v6->sin6_addr);
    out.size = sizeof *v6;
  } else {
    auto* v4 = reinterpret_cast<sockaddr_in*>(&out.storage);
    v4->sin_family = AF_INET;
    v4->sin_port = htons(address.port);
    inet_pton(AF_INET, address.host.c_str(), &v4->sin_addr);
    out.size = sizeof *v4;
  }
  return out;
}

std::string kernel_address_text(const sockaddr_storage& address) {
  std::array<char, INET6_ADDRSTRLEN> host{};
  SocketAddress out;
  if (address.ss_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&address);
    out.port = ntohs(v6->sin6_port);
    out.v6 = !IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr);
    const void* raw = out.v6 ? &v6->sin6_addr.s6_addr[0] : &v6->sin6_addr.s6_addr[12];
    inet_ntop(out.v6 ? AF_INET6 : AF_INET, raw, host.data(), host.size());
  } else if (address.ss_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&address);
    out.port = ntohs(v4->sin_port);
    inet_ntop(AF_INET, &v4->sin_addr, host.data(), host.size());
  } else {
    return "unknown";
  }
  out.host = host.data();
  return out.text();
}

std::string local_address(int fd) { return end_of(fd, getsockname); }
std::string peer_address(int fd) { return end_of(fd, getpeername); }

std::string kernel_address_network(const sockaddr_storage& address) {
  constexpr size_t kUpperHalf = 8;  // bytes
  if (address.ss_family == AF_INET) {
    const in_addr& v4 = reinterpret_cast<const sockaddr_in&>(address).sin_addr;
    return {reinterpret_cast<const char*>(&v4), sizeof v4};
  }
  if (address.ss_family != AF_INET6) return {};
  const in6_addr& v6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  const auto* bytes = reinterpret_cast<const char*>(&v6);
  if (IN6_IS_ADDR_V4MAPPED(&v6)) return {bytes + 12, sizeof(in_addr)};
  return {bytes, kUpperHalf};
}

std::string address_network(std::string_view address) {
  const Result<SocketAddress> parsed = parse_socket_address(address, 0);
  return parsed ? kernel_address_network(kernel_address(parsed.value()).storage) : std::string();
}

std::string peer_network(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  return kernel_address_network(address);
}

}  // namespace sluice
