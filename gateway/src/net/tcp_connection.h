// One TCP socket: receives into the reactor's buffer ring, sends what the protocol core queued
// with one gathered send per batch. Owned by its reactor. It came in through a portal, or goes out
// to another gateway; the latter, and what comes in at a forwarding port, is reset when it ends, so
// that nothing is delivered after that (DESIGN R6).
#pragma once

#include <liburing.h>
#include <sys/socket.h>

#include <cstdint>
#include <memory>

#include "base/socket_address.h"
#include "forward/dialer.h"
#include "iscsi/connection.h"
#include "net/admission.h"

namespace sluice::net {

class Reactor;

class TcpConnection final : public iscsi::Wire {
 public:
  TcpConnection(Reactor& reactor, int fd, uint64_t id, iscsi::Connection::Ends ends,
                std::shared_ptr<Admission> admission);
  // Goes out: connect() next.
  TcpConnection(Reactor& reactor, int fd, std::shared_ptr<forward::Caller> caller);
  ~TcpConnection() override;

  void start() { arm_receive(); }
  // caller->connected() or unreachable() follows, within limits::kDialBound.
  void connect(const KernelAddress& address);
  void on_receive(int result, uint32_t flags);
  void on_send(int result);
  // Sends what is queued, unless a send is in flight.
  void flush();
  // Buffers are back: receiving may go on.
  void unstarve();
  void tick();
  bool dead() const;
  // Closes the socket; what it holds is not read, what waits to be sent is not sent.
  void abandon();

  // The target's end of what came in; null for what goes out.
  iscsi::Connection* target() { return target_.get(); }

  // --- iscsi::Wire
  void schedule_flush() override;
  void close(bool discard) override;
  void authenticated() override { leave_login(); }
  void progressed() override {
    if (admission_) admission_->progressed();
  }
  Nanos login_timeout(Nanos configured) const override {
    return admission_ ? admission_->login_timeout(configured) : configured;
  }
  void over() override;

 private:
  void arm_receive();
  void on_connected(int result);
  void shut();
  void drop_output();
  void leave_login();
  void peer_gone();
  void maybe_bury();

  Reactor& reactor_;
  int fd_;
  bool receiving_ = false;  // a multishot receive is armed
  bool sending_ = false;
  bool connecting_ = false;
  const bool resets_;  // ends by a reset
  bool dirty_ = false;
  bool starved_ = false;
  bool closing_ = false;     // nothing more is read for the core
  bool discarding_ = false;  // nothing more is sent
  bool shut_ = false;        // our side of the stream is closed
  bool peer_closed_ = false;
  bool buried_ = false;
  Nanos closing_since_ = 0;
  Nanos send_since_ = 0;
  Nanos starved_since_ = 0;
  msghdr message_{};
  KernelAddress address_;  // while it connects
  __kernel_timespec patience_{};
  std::shared_ptr<Admission> admission_;  // of what came in
  std::unique_ptr<iscsi::Connection> target_;
  std::shared_ptr<forward::Caller> caller_;
  iscsi::StreamEnd& end_;  // one of the two
  iscsi::Outbox& out_;
};

}  // namespace sluice::net
