// Connections to other gateways (forward/dialer.h).
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/log.h"
#include "base/safety_mutation.h"
#include "base/socket_address.h"
#include "net/reactor.h"
#include "net/tcp_connection.h"

namespace sluice::net {

void Reactor::dial(const std::string& address, std::shared_ptr<forward::Caller> caller) {
  const Result<SocketAddress> parsed = parse_socket_address(address, 3261);
  const KernelAddress where = parsed ? kernel_address(parsed.value()) : KernelAddress{};
  const int fd = parsed ? ::socket(where.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
  if (fd < 0) {
    log::error(
        "can't call another gateway",
        {{"address", address}, {"error", parsed ? std::strerror(errno) : parsed.error().c_str()}});
    return post([caller = std::move(caller)] { caller->unreachable(false); });
  }
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  // DESIGN R6: from creation, so that it also holds for a process that is killed.
  const linger reset{1, 0};
  if (!mutation_disables(Guard::kLinger)) {
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  }
  const std::string& cc = setup_.tcp_congestion;
  if (!cc.empty()) {
    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, cc.data(), static_cast<socklen_t>(cc.size()));
  }
  connections_.push_back(std::make_unique<TcpConnection>(*this, fd, std::move(caller)));
  connection_count_.store(static_cast<unsigned>(connections_.size()), std::memory_order_relaxed);
  connections_.back()->connect(where);
}

}  // namespace sluice::net
