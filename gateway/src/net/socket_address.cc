#include "net/socket_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <charconv>
#include <cstring>

namespace sluice::net {
namespace {

Result<uint16_t> parse_port(const std::string& text, const std::string& whole) {
  unsigned port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port > 65535) {
    return Error{fmt::format("'{}': the port must be a number from 0 to 65535", whole)};
  }
  return static_cast<uint16_t>(port);
}

std::string name_of(int fd, int (*get)(int, sockaddr*, socklen_t*)) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (get(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "unknown";
  return format_address(address);
}

}  // namespace

Result<SocketAddress> parse_address(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) {
    return Error{
        fmt::format("'{}': expected ip:port, for example 0.0.0.0:3260 or [::]:3260", text)};
  }
  auto port = parse_port(text.substr(colon + 1), text);
  if (!port) return Error{port.error()};
  std::string ip = text.substr(0, colon);
  SocketAddress out;
  if (ip.size() >= 2 && ip.front() == '[' && ip.back() == ']') {
    ip = ip.substr(1, ip.size() - 2);
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&out.storage);
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port.value());
    out.size = sizeof *v6;
    if (inet_pton(AF_INET6, ip.c_str(), &v6->sin6_addr) == 1) return out;
  } else {
    auto* v4 = reinterpret_cast<sockaddr_in*>(&out.storage);
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port.value());
    out.size = sizeof *v4;
    if (inet_pton(AF_INET, ip.c_str(), &v4->sin_addr) == 1) return out;
  }
  return Error{fmt::format(
      "'{}' is not a numeric address; write 192.0.2.1:3260 or [2001:db8::1]:3260", text)};
}

std::string format_address(const sockaddr_storage& address) {
  char ip[INET6_ADDRSTRLEN] = {};
  if (address.ss_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&address);
    // A dual-stack socket shows IPv4 peers as ::ffff:a.b.c.d; people know them without that.
    if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
      inet_ntop(AF_INET, &v6->sin6_addr.s6_addr[12], ip, sizeof ip);
      return fmt::format("{}:{}", ip, ntohs(v6->sin6_port));
    }
    inet_ntop(AF_INET6, &v6->sin6_addr, ip, sizeof ip);
    return fmt::format("[{}]:{}", ip, ntohs(v6->sin6_port));
  }
  const auto* v4 = reinterpret_cast<const sockaddr_in*>(&address);
  inet_ntop(AF_INET, &v4->sin_addr, ip, sizeof ip);
  return fmt::format("{}:{}", ip, ntohs(v4->sin_port));
}

std::string local_address(int fd) { return name_of(fd, getsockname); }
std::string peer_address(int fd) { return name_of(fd, getpeername); }

}  // namespace sluice::net
