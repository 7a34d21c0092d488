// One TCP socket: receives into the reactor's buffer ring, and sends the output that its protocol
// endpoint has queued with one gathered send per batch. Its reactor owns it. A host or another
// gateway made the connection through a portal, or this gateway makes it to another gateway. The
// connections between gateways end by a reset, so that nothing is delivered afterwards (DESIGN R6).
#pragma once

#include <liburing.h>
#include <sys/socket.h>

#include <cstdint>
#include <memory>

#include "base/socket_address.h"
#include "forward/dialer.h"
#include "iscsi/connection.h"
#include "net/admission.h"
#include "net/connection_context.h"

namespace sluice::net {

class TcpConnection final : public iscsi::Transport {
 public:
  TcpConnection(ConnectionContext& context, int fd, uint64_t id, iscsi::Connection::Ends ends,
                std::shared_ptr<Admission> admission);
  // For another gateway; call connect() next.
  TcpConnection(ConnectionContext& context, int fd, std::shared_ptr<forward::Caller> caller);
  ~TcpConnection() override;

  void start() { arm_receive(); }
  // caller->connected() or unreachable() is called within limits::kDialBound.
  void connect(const KernelAddress& address);
  void on_receive(int result, uint32_t flags);
  void on_send(int result);
  // Sends queued output unless a send is in flight.
  void flush();
  // The receive ring has buffers again, for which this connection waits.
  void on_buffers();
  void tick();
  // The endpoint is over, and the kernel holds no operation of this connection.
  bool finished() const;
  // Closes the socket. Its input is not read, and queued output is not sent.
  void abandon();

  // The target's endpoint of a connection that a peer made; null for one to another gateway.
  iscsi::Connection* target() { return target_.get(); }

  // --- iscsi::Transport
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
  // What is still transferred in each direction. It only advances; states may be skipped.
  enum class Stream : uint8_t {
    kConnecting,  // to another gateway
    kOpen,
    kDraining,    // input is ignored; queued output is still sent
    kHalfClosed,  // all output was sent, and FIN after it; the peer has not closed yet
    kDiscarding,  // the socket is shut, queued output is dropped; the last receive has to complete
    kEnded,       // the peer closed, the socket failed, or the connection was abandoned
  };
  enum class Receive : uint8_t { kIdle, kArmed, kWaitsForBuffers };
  enum class Send : uint8_t { kIdle, kConnect, kInFlight };

  void advance(Stream next);
  bool ignores_input() const { return stream_ >= Stream::kDraining; }
  bool discards_output() const { return stream_ >= Stream::kDiscarding; }
  void arm_receive();
  void receive_further();
  void on_connected(int result);
  void send_fin();
  void shut(bool reset);
  void leave_login();
  void end();
  void destroy_if_finished();

  ConnectionContext& context_;
  int fd_;
  Stream stream_;
  Receive receive_ = Receive::kIdle;
  Send send_ = Send::kIdle;
  const bool resets_;               // it ends by a reset
  bool flush_scheduled_ = false;    // the reactor calls flush() at the end of the batch
  bool destroy_scheduled_ = false;  // the reactor deletes it at the end of the batch
  Nanos closing_since_ = 0;
  Nanos send_since_ = 0;
  Nanos waits_for_buffers_since_ = 0;
  msghdr message_{};
  KernelAddress address_;  // only while it connects
  __kernel_timespec connect_timeout_{};
  std::shared_ptr<Admission> admission_;  // of a connection that a peer made
  std::unique_ptr<iscsi::Connection> target_;
  std::shared_ptr<forward::Caller> caller_;
  iscsi::ProtocolEndpoint& end_;  // one of the two above
  iscsi::Outbox& out_;
};

}  // namespace sluice::net
