#include "wire/tcp.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace sluice::bench {

void die(const std::string& what) {
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, what.c_str());
  std::exit(1);
}

namespace {

std::string with_errno(const std::string& what) { return what + ": " + std::strerror(errno); }

bool set_congestion(int fd, const std::string& name) {
  return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(),
                    static_cast<socklen_t>(name.size())) == 0;
}

sockaddr_in address_of(const std::string& address, uint16_t port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  if (inet_pton(AF_INET, address.c_str(), &at.sin_addr) != 1) die("bad IPv4 address " + address);
  return at;
}

int tcp_socket() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) die(with_errno("socket"));
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

}  // namespace

std::string fix_congestion(int fd, const std::string& wanted) {
  if (wanted == "auto") {
    if (!set_congestion(fd, "cubic")) set_congestion(fd, "reno");
  } else if (!set_congestion(fd, wanted)) {
    die(with_errno("TCP_CONGESTION " + wanted));
  }
  char name[16] = {};
  socklen_t size = sizeof name - 1;
  if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &size) != 0) return "unknown";
  return name;
}

int listen_on(const std::string& address, uint16_t port, const std::string& congestion,
              std::string* in_effect) {
  const int fd = tcp_socket();
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  *in_effect = fix_congestion(fd, congestion);  // accepted sockets inherit it
  const sockaddr_in at = address_of(address, port);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) die(with_errno("bind"));
  if (listen(fd, 64) != 0) die(with_errno("listen"));
  return fd;
}

int connect_to(const std::string& address, uint16_t port, const std::string& congestion,
               std::string* in_effect) {
  const int fd = tcp_socket();
  *in_effect = fix_congestion(fd, congestion);
  const sockaddr_in at = address_of(address, port);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) {
    die(with_errno("connect to " + address + ":" + std::to_string(port)));
  }
  const timeval patience{.tv_sec = 10, .tv_usec = 0};  // a login must not hang without end
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  return fd;
}

void send_all(int fd, const void* data, size_t size) {
  const char* p = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t n = send(fd, p, size, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) die(with_errno("send"));
    p += n;
    size -= static_cast<size_t>(n);
  }
}

bool receive_all(int fd, void* data, size_t size) {
  char* p = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t n = recv(fd, p, size, MSG_WAITALL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    p += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

}  // namespace sluice::bench
