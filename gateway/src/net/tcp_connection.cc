#include "net/tcp_connection.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "base/limits.h"
#include "net/reactor.h"

namespace sluice::net {

TcpConnection::TcpConnection(Reactor& reactor, int fd, uint64_t id, iscsi::Connection::Ends ends)
    : reactor_(reactor), fd_(fd), core_(reactor.shard(), *this, id, std::move(ends)) {}

TcpConnection::~TcpConnection() { ::close(fd_); }

void TcpConnection::arm_receive() {
  io_uring_sqe* sqe = reactor_.sqe();
  io_uring_prep_recv_multishot(sqe, fd_, nullptr, 0, 0);
  sqe->flags |= IOSQE_BUFFER_SELECT;
  sqe->buf_group = ReceiveRing::kGroup;
  Reactor::tag(sqe, this, Reactor::Kind::kReceive);
  receiving_ = true;
}

void TcpConnection::on_receive(int result, uint32_t flags) {
  if (!(flags & IORING_CQE_F_MORE)) receiving_ = false;
  if (result > 0) {
    Slice bytes = reactor_.receive_ring().take(static_cast<uint32_t>(result), flags);
    if (!closing_) core_.receive(std::move(bytes));
  } else if (result == -ENOBUFS) {
    starved_ = true;
    starved_since_ = reactor_.now();
    return reactor_.starve(this);
  } else if (result != -EINTR && result != -EAGAIN) {
    return peer_gone();
  }
  if (!receiving_ && !peer_closed_ && !discarding_) arm_receive();
  maybe_bury();
}

void TcpConnection::unstarve() {
  starved_ = false;
  if (!receiving_ && !peer_closed_ && !discarding_) arm_receive();
  maybe_bury();
}

void TcpConnection::peer_gone() {
  peer_closed_ = true;
  if (!closing_) {
    closing_ = true;
    closing_since_ = reactor_.now();
  }
  discarding_ = true;  // ERL 0: a session does not outlive its connection in either direction
  // A send may have failed while the stream is whole (a borrowed page that is gone: EFAULT): the
  // peer has to hear of the end, and a receive or send in flight has to complete.
  ::shutdown(fd_, SHUT_RDWR);
  core_.on_closed();
  maybe_bury();
}

void TcpConnection::abandon() {
  if (!peer_closed_) peer_gone();
}

void TcpConnection::schedule_flush() {
  if (dirty_ || discarding_) return;
  dirty_ = true;
  reactor_.flush_later(this);
}

void TcpConnection::flush() {
  dirty_ = false;
  // Being queued for this flush may have been all that kept a finished connection alive.
  if (discarding_ || sending_ || !core_.outbox().ready()) return maybe_bury();
  const std::span<iovec> vectors = core_.outbox().take(limits::kMaxSendVectors);
  message_.msg_iov = vectors.data();
  message_.msg_iovlen = vectors.size();
  io_uring_sqe* sqe = reactor_.sqe();
  io_uring_prep_sendmsg(sqe, fd_, &message_, MSG_NOSIGNAL | MSG_WAITALL);
  Reactor::tag(sqe, this, Reactor::Kind::kSend);
  sending_ = true;
  send_since_ = reactor_.now();
  reactor_.shard().counters->sends.add();
}

void TcpConnection::on_send(int result) {
  sending_ = false;
  if (result < 0 && result != -EINTR && result != -EAGAIN) {
    core_.outbox().sent(0);
    if (!peer_closed_) return peer_gone();
    return maybe_bury();
  }
  const auto n = static_cast<size_t>(result > 0 ? result : 0);
  core_.outbox().sent(n);
  core_.on_sent(n);
  if (core_.outbox().ready()) {
    schedule_flush();
  } else if (closing_ && !shut_ && core_.outbox().empty()) {
    // Everything is said. The peer reads it before it sees our FIN; closing now could reset it
    // away.
    shut_ = true;
    ::shutdown(fd_, SHUT_WR);
  }
  maybe_bury();
}

void TcpConnection::close(bool discard) {
  if (!closing_) closing_since_ = reactor_.now();
  closing_ = true;
  if (discard) {
    discarding_ = true;
    // Completes the receive and a send that is in flight.
    ::shutdown(fd_, SHUT_RDWR);
    shut_ = true;
  } else if (core_.outbox().empty() && !shut_) {
    shut_ = true;
    ::shutdown(fd_, SHUT_WR);
  }
  maybe_bury();
}

void TcpConnection::tick() {
  const Nanos now = reactor_.now();
  const bool lingers = closing_ && !discarding_ && now - closing_since_ > limits::kCloseLinger;
  const bool stuck = sending_ && now - send_since_ > limits::kSendStall;
  const bool hungry = starved_ && now - starved_since_ > limits::kStarvation;
  if (lingers) {
    close(true);
  } else if (!closing_ && (stuck || hungry)) {
    core_.drop(stuck ? "the peer does not read" : "no receive memory");
  }
  core_.tick();
}

void TcpConnection::over() { maybe_bury(); }

bool TcpConnection::dead() const {
  return core_.over() && !receiving_ && !sending_ && !starved_ && !dirty_ &&
         (peer_closed_ || discarding_);
}

void TcpConnection::maybe_bury() {
  if (buried_ || !dead()) return;
  buried_ = true;
  reactor_.bury_later(this);
}

}  // namespace sluice::net
