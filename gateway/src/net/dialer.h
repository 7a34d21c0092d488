// Connections to other gateways, by a reactor's sockets.
//
// Threads: the reactor's only.
#pragma once

#include <memory>
#include <string>

#include "forward/dialer.h"
#include "net/connection_context.h"
#include "net/connections.h"
#include "net/task_queue.h"

namespace sluice::net {

class Dialer final : public forward::Dialer {
 public:
  // `tcp_congestion`: TCP_CONGESTION of the sockets; empty: the system's default.
  Dialer(ConnectionContext& context, Connections& connections, TaskQueue& tasks,
         std::string tcp_congestion)
      : context_(context),
        connections_(connections),
        tasks_(tasks),
        tcp_congestion_(std::move(tcp_congestion)) {}

  void dial(const std::string& address, std::shared_ptr<forward::Caller> caller) override;

 private:
  ConnectionContext& context_;
  Connections& connections_;
  TaskQueue& tasks_;
  const std::string tcp_congestion_;
};

}  // namespace sluice::net
