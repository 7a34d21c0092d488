#include "base/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <ctime>

namespace sluice::service_manager {
namespace {

void notify(std::string_view state) {
  const char* address = std::getenv("NOTIFY_SOCKET");
  if (address != nullptr) send(address, state);
}

}  // namespace

void ready(std::string_view status) { notify("READY=1\nSTATUS=" + std::string(status)); }

void reloading() {
  // Type=notify-reload demands the time, to tell this reload from an earlier one.
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const auto micros = static_cast<long long>(now.tv_sec) * 1'000'000 + now.tv_nsec / 1000;
  notify("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(micros));
}

void stopping() { notify("STOPPING=1"); }

bool send(const std::string& address, std::string_view state) {
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  if (address.size() < 2 || address.size() >= sizeof to.sun_path) return false;
  if (address[0] != '/' && address[0] != '@') return false;
  std::copy(address.begin(), address.end(), to.sun_path);
  if (address[0] == '@') to.sun_path[0] = '\0';  // the abstract namespace
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address.size());
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  const ssize_t sent = ::sendto(fd, state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                                reinterpret_cast<const sockaddr*>(&to), size);
  ::close(fd);
  return sent == static_cast<ssize_t>(state.size());
}

}  // namespace sluice::service_manager
