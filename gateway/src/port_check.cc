#include "port_check.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "base/file_descriptor.h"
#include "base/socket_address.h"

namespace sluice {
namespace {

constexpr std::chrono::milliseconds kPatience{1000};
constexpr std::chrono::milliseconds kTryAgain{20};

bool in_use(const SocketAddress& address) {
  const KernelAddress kernel = kernel_address(address);
  const FileDescriptor socket(::socket(kernel.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return false;
  const int on = 1;
  // As the portal's own: connections of a predecessor that linger are no obstacle, a listener is.
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  return ::bind(socket.get(), kernel.get(), kernel.size) != 0 && errno == EADDRINUSE;
}

}  // namespace

std::vector<std::string> ports_in_use(const std::vector<std::string>& addresses,
                                      const std::vector<std::string>& own) {
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    std::vector<std::string> used;
    for (const std::string& text : addresses) {
      const Result<SocketAddress> address = parse_socket_address(text, 0);
      if (!address || address.value().port == 0) continue;
      if (std::ranges::find(own, address.value().text()) == own.end() && in_use(address.value())) {
        used.push_back(text);
      }
    }
    if (used.empty() || std::chrono::steady_clock::now() >= give_up) return used;
    std::this_thread::sleep_for(kTryAgain);
  }
}

}  // namespace sluice
