// One TCP socket: receives into the reactor's buffer ring, sends what the protocol core queued
// with one gathered send per batch. Owned by its reactor.
#pragma once

#include <sys/socket.h>

#include <cstdint>

#include "iscsi/connection.h"

namespace sluice::net {

class Reactor;

class TcpConnection final : public iscsi::Wire {
 public:
  TcpConnection(Reactor& reactor, int fd, uint64_t id, iscsi::Connection::Ends ends);
  ~TcpConnection() override;

  void start() { arm_receive(); }
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

  iscsi::Connection& core() { return core_; }

  // --- iscsi::Wire
  void schedule_flush() override;
  void close(bool discard) override;
  void over() override;

 private:
  void arm_receive();
  void peer_gone();
  void maybe_bury();

  Reactor& reactor_;
  int fd_;
  bool receiving_ = false;  // a multishot receive is armed
  bool sending_ = false;
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
  iscsi::Connection core_;
};

}  // namespace sluice::net
