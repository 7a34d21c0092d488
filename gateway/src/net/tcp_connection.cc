#include "net/tcp_connection.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "base/limits.h"
#include "net/reactor.h"

namespace sluice::net {

TcpConnection::TcpConnection(Reactor& reactor, int fd, uint64_t id, iscsi::Connection::Ends ends,
                             std::shared_ptr<Admission> admission)
    : reactor_(reactor),
      fd_(fd),
      resets_(ends.forwarding),
      admission_(std::move(admission)),
      target_(std::make_unique<iscsi::Connection>(reactor.shard(), *this, id, std::move(ends))),
      end_(*target_),
      out_(end_.outbox()) {
  if (admission_) admission_->on_evict = [this] { target_->make_room(); };
}

TcpConnection::TcpConnection(Reactor& reactor, int fd, std::shared_ptr<forward::Caller> caller)
    : reactor_(reactor),
      fd_(fd),
      resets_(true),
      caller_(std::move(caller)),
      end_(*caller_),
      out_(end_.outbox()) {}

TcpConnection::~TcpConnection() {
  if (admission_) admission_->on_evict = nullptr;
  ::close(fd_);
}

void TcpConnection::connect(const KernelAddress& address) {
  address_ = address;
  // Handed over apart, the second would be refused, and nothing would bound the first.
  reactor_.make_room(2);
  io_uring_sqe* sqe = reactor_.sqe();
  io_uring_prep_connect(sqe, fd_, address_.get(), address_.size);
  sqe->flags |= IOSQE_IO_LINK;
  Reactor::tag(sqe, this, Reactor::Kind::kSend);
  patience_.tv_sec = limits::kDialBound / kSecond;
  patience_.tv_nsec = limits::kDialBound % kSecond;
  sqe = reactor_.sqe();
  io_uring_prep_link_timeout(sqe, &patience_, 0);
  Reactor::tag(sqe, nullptr, Reactor::Kind::kIgnore);
  connecting_ = sending_ = true;
}

void TcpConnection::on_connected(int result) {
  connecting_ = sending_ = false;
  if (result == 0 && !peer_closed_ && !end_.over()) {
    arm_receive();
    return caller_->connected(*this);
  }
  const bool told = std::exchange(peer_closed_, true);  // by abandon()
  closing_ = true;
  drop_output();
  // A reset before the connection stood is a refusal, too.
  const bool refused = result == -ECONNREFUSED || result == -ECONNRESET;
  if (!told) caller_->unreachable(refused);
  maybe_bury();
}

// Nothing is received or sent any more; what is in the kernel's queues of one that resets is gone.
void TcpConnection::shut() {
  if (resets_) {
    sockaddr none{};
    none.sa_family = AF_UNSPEC;
    if (::connect(fd_, &none, sizeof none) == 0) return;
  }
  ::shutdown(fd_, SHUT_RDWR);
}

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
    if (!closing_) end_.receive(std::move(bytes));
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

// Nothing is sent any more. What waits goes now: the session may outlive this for as long as a
// backend keeps a command of it.
void TcpConnection::drop_output() {
  discarding_ = true;
  out_.discard();
}

void TcpConnection::leave_login() {
  if (admission_) admission_->leave_login();
}

void TcpConnection::peer_gone() {
  leave_login();
  peer_closed_ = true;
  if (!closing_) {
    closing_ = true;
    closing_since_ = reactor_.now();
  }
  drop_output();  // ERL 0: a session does not outlive its connection in either direction
  // A send may have failed while the stream is whole (a borrowed page that is gone: EFAULT): the
  // peer has to hear of the end, and a receive or send in flight has to complete.
  shut();
  end_.on_closed();
  maybe_bury();
}

void TcpConnection::abandon() {
  if (peer_closed_) return;
  // Of the peer this says nothing.
  if (caller_) caller_->drop("this gateway stood still");
  peer_gone();
}

void TcpConnection::schedule_flush() {
  if (dirty_ || discarding_) return;
  dirty_ = true;
  reactor_.flush_later(this);
}

void TcpConnection::flush() {
  dirty_ = false;
  // Being queued for this flush may have been all that kept a finished connection alive.
  if (discarding_ || sending_ || !out_.ready()) return maybe_bury();
  const std::span<iovec> vectors = out_.take(limits::kMaxSendVectors);
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
  if (connecting_) return on_connected(result);
  sending_ = false;
  if (result < 0 && result != -EINTR && result != -EAGAIN) {
    out_.sent(0);
    if (!peer_closed_) return peer_gone();
    return maybe_bury();
  }
  const auto n = static_cast<size_t>(result > 0 ? result : 0);
  out_.sent(n);
  end_.on_sent(n);
  if (out_.ready()) {
    schedule_flush();
  } else if (closing_ && !shut_ && out_.empty()) {
    // Everything is said. The peer reads it before it sees our FIN; closing now could reset it
    // away.
    shut_ = true;
    ::shutdown(fd_, SHUT_WR);
  }
  maybe_bury();
}

void TcpConnection::close(bool discard) {
  leave_login();
  if (!closing_) closing_since_ = reactor_.now();
  closing_ = true;
  if (discard) {
    drop_output();
    // Completes the receive and a send that is in flight.
    shut();
    shut_ = true;
  } else if (out_.empty() && !shut_) {
    shut_ = true;
    ::shutdown(fd_, SHUT_WR);
  }
  maybe_bury();
}

void TcpConnection::tick() {
  const Nanos now = reactor_.now();
  const bool lingers = closing_ && !discarding_ && now - closing_since_ > limits::kCloseLinger;
  const bool stuck = sending_ && !connecting_ && now - send_since_ > limits::kSendStall;
  const bool hungry = starved_ && now - starved_since_ > limits::kStarvation;
  if (lingers) {
    close(true);
  } else if (!closing_ && (stuck || hungry)) {
    end_.drop(stuck ? "the peer does not read" : "no receive memory");
  }
  end_.tick();
}

void TcpConnection::over() { maybe_bury(); }

bool TcpConnection::dead() const {
  return end_.over() && !receiving_ && !sending_ && !starved_ && !dirty_ &&
         (peer_closed_ || discarding_);
}

void TcpConnection::maybe_bury() {
  if (buried_ || !dead()) return;
  buried_ = true;
  reactor_.bury_later(this);
}

}  // namespace sluice::net
