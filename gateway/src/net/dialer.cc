#include "net/dialer.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/log.h"
#include "base/safety_mutation.h"
#include "base/socket_address.h"
#include "net/tcp_connection.h"

namespace sluice::net {

void Dialer::dial(const std::string& address, std::shared_ptr<forward::Caller> caller) {
  const Result<SocketAddress> parsed = parse_socket_address(address, 3261);
  const KernelAddress where = parsed ? kernel_address(parsed.value()) : KernelAddress{};
  const int fd = parsed ? ::socket(where.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
  if (fd < 0) {
    log::error(
        "can't call another gateway",
        {{"address", address}, {"error", parsed ? std::strerror(errno) : parsed.error().c_str()}});
    return tasks_.post([caller = std::move(caller)] { caller->unreachable(false); });
  }
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  // DESIGN R6: from creation, so that it also holds for a process that is killed.
  const linger reset{1, 0};
  if (!mutation_disables(Guard::kLinger)) {
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  }
  if (!tcp_congestion_.empty()) {
    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, tcp_congestion_.data(),
               static_cast<socklen_t>(tcp_congestion_.size()));
  }
  connections_.add(std::make_unique<TcpConnection>(context_, fd, std::move(caller))).connect(where);
}

}  // namespace sluice::net
