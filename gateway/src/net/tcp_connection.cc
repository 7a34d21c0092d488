#include "net/tcp_connection.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>

#include "base/limits.h"
#include "net/completion_tag.h"

namespace sluice::net {

TcpConnection::TcpConnection(ConnectionContext& context, int fd, uint64_t id,
                             iscsi::Connection::Ends ends, std::shared_ptr<Admission> admission)
    : context_(context),
      fd_(fd),
      stream_(Stream::kOpen),
      resets_(ends.forwarding),
      admission_(std::move(admission)),
      target_(std::make_unique<iscsi::Connection>(context.shard, *this, id, std::move(ends))),
      end_(*target_),
      out_(end_.outbox()) {
  if (admission_) admission_->on_evict = [this] { target_->make_room(); };
}

TcpConnection::TcpConnection(ConnectionContext& context, int fd,
                             std::shared_ptr<forward::Caller> caller)
    : context_(context),
      fd_(fd),
      stream_(Stream::kConnecting),
      resets_(true),
      caller_(std::move(caller)),
      end_(*caller_),
      out_(end_.outbox()) {}

TcpConnection::~TcpConnection() {
  if (admission_) admission_->on_evict = nullptr;
  ::close(fd_);
}

void TcpConnection::advance(Stream next) {
  assert(next > stream_);
  if (!ignores_input() && next >= Stream::kDraining) closing_since_ = context_.shard.now;
  // The memory of the output is freed now: the session may outlive this connection for as long as
  // a backend executes one of its commands.
  if (!discards_output() && next >= Stream::kDiscarding) out_.discard();
  stream_ = next;
}

void TcpConnection::connect(const KernelAddress& address) {
  assert(stream_ == Stream::kConnecting && send_ == Send::kIdle);
  address_ = address;
  // If they were submitted separately, the kernel would refuse the second, and nothing would bound
  // the time of the first.
  context_.submissions.make_room(2);
  io_uring_sqe* sqe = context_.submissions.sqe();
  io_uring_prep_connect(sqe, fd_, address_.get(), address_.size);
  sqe->flags |= IOSQE_IO_LINK;
  tag(sqe, this, CompletionKind::kSend);
  connect_timeout_.tv_sec = limits::kDialBound / kSecond;
  connect_timeout_.tv_nsec = limits::kDialBound % kSecond;
  sqe = context_.submissions.sqe();
  io_uring_prep_link_timeout(sqe, &connect_timeout_, 0);
  tag(sqe, nullptr, CompletionKind::kIgnore);
  send_ = Send::kConnect;
}

void TcpConnection::on_connected(int result) {
  send_ = Send::kIdle;
  if (result == 0 && stream_ == Stream::kConnecting && !end_.over()) {
    advance(Stream::kOpen);
    arm_receive();
    return caller_->connected(*this);
  }
  if (stream_ != Stream::kEnded) {  // else abandon() has reported the end
    advance(Stream::kEnded);
    // A reset before the connection is established is a refusal, too.
    caller_->unreachable(result == -ECONNREFUSED || result == -ECONNRESET);
  }
  destroy_if_finished();
}

// Ends both directions in the kernel. A reset also discards its queues there. After a FIN instead,
// a peer that still sends can wait for long (gateway/decisions/session-and-login.md).
void TcpConnection::shut(bool reset) {
  if (reset) {
    sockaddr none{};
    none.sa_family = AF_UNSPEC;
    if (::connect(fd_, &none, sizeof none) == 0) return;
  }
  ::shutdown(fd_, SHUT_RDWR);
}

// The peer reads all output before our FIN. A close() here could reset the output away.
void TcpConnection::send_fin() {
  assert(out_.empty());
  advance(Stream::kHalfClosed);
  ::shutdown(fd_, SHUT_WR);
}

void TcpConnection::arm_receive() {
  assert(receive_ == Receive::kIdle);
  io_uring_sqe* sqe = context_.submissions.sqe();
  io_uring_prep_recv_multishot(sqe, fd_, nullptr, 0, 0);
  sqe->flags |= IOSQE_BUFFER_SELECT;
  sqe->buf_group = ReceiveRing::kGroup;
  tag(sqe, this, CompletionKind::kReceive);
  receive_ = Receive::kArmed;
}

void TcpConnection::receive_further() {
  if (receive_ == Receive::kIdle && !discards_output()) arm_receive();
  destroy_if_finished();
}

void TcpConnection::on_receive(int result, uint32_t flags) {
  assert(receive_ == Receive::kArmed);
  if (!(flags & IORING_CQE_F_MORE)) receive_ = Receive::kIdle;
  if (result > 0) {
    Slice bytes = context_.receive_ring.take(static_cast<uint32_t>(result), flags);
    if (!ignores_input()) end_.receive(std::move(bytes));
  } else if (result == -ENOBUFS) {
    receive_ = Receive::kWaitsForBuffers;
    waits_for_buffers_since_ = context_.shard.now;
    return context_.deferred.wait_for_buffers.push_back(this);
  } else if (result != -EINTR && result != -EAGAIN) {
    return end();
  }
  receive_further();
}

void TcpConnection::on_buffers() {
  assert(receive_ == Receive::kWaitsForBuffers);
  receive_ = Receive::kIdle;
  receive_further();
}

void TcpConnection::leave_login() {
  if (admission_) admission_->leave_login();
}

// No byte passes any more. At error recovery level 0 a session does not outlive its connection.
void TcpConnection::end() {
  if (stream_ == Stream::kEnded) return destroy_if_finished();
  leave_login();
  advance(Stream::kEnded);
  // A send may have failed although the stream is whole (EFAULT: a mapped page is gone). The peer
  // must notice the end, and a receive or send in flight must complete.
  shut(resets_);
  end_.on_closed();
  destroy_if_finished();
}

void TcpConnection::abandon() {
  if (stream_ == Stream::kEnded) return;
  // The reason says that this gateway failed, not the peer.
  if (caller_) caller_->drop("this gateway stood still");
  end();
}

void TcpConnection::schedule_flush() {
  if (flush_scheduled_ || discards_output()) return;
  flush_scheduled_ = true;
  context_.deferred.flush.push_back(this);
}

void TcpConnection::flush() {
  flush_scheduled_ = false;
  // The scheduled flush may have been the last reason to keep a finished connection.
  if (discards_output() || send_ != Send::kIdle || !out_.ready()) return destroy_if_finished();
  const std::span<iovec> vectors = out_.take(limits::kMaxSendVectors);
  message_.msg_iov = vectors.data();
  message_.msg_iovlen = vectors.size();
  io_uring_sqe* sqe = context_.submissions.sqe();
  io_uring_prep_sendmsg(sqe, fd_, &message_, MSG_NOSIGNAL | MSG_WAITALL);
  tag(sqe, this, CompletionKind::kSend);
  send_ = Send::kInFlight;
  send_since_ = context_.shard.now;
  context_.shard.counters->sends.add();
}

void TcpConnection::on_send(int result) {
  if (send_ == Send::kConnect) return on_connected(result);
  assert(send_ == Send::kInFlight);
  send_ = Send::kIdle;
  if (result < 0 && result != -EINTR && result != -EAGAIN) {
    out_.sent(0);
    return end();
  }
  const auto n = static_cast<size_t>(result > 0 ? result : 0);
  out_.sent(n);
  end_.on_sent(n);
  if (out_.ready()) {
    schedule_flush();
  } else if (stream_ == Stream::kDraining && out_.empty()) {
    send_fin();
  }
  destroy_if_finished();
}

void TcpConnection::close(bool discard) {
  leave_login();
  if (discard && stream_ < Stream::kDiscarding) {
    advance(Stream::kDiscarding);
    shut(true);  // the receive and a send in flight complete
  } else if (!discard && stream_ < Stream::kDraining) {
    advance(Stream::kDraining);
    if (out_.empty()) send_fin();
  }
  destroy_if_finished();
}

void TcpConnection::tick() {
  const Nanos now = context_.shard.now;
  const bool lingers =
      ignores_input() && !discards_output() && now - closing_since_ > limits::kCloseLinger;
  const bool unread = send_ == Send::kInFlight && now - send_since_ > limits::kSendStall;
  const bool unfed =
      receive_ == Receive::kWaitsForBuffers && now - waits_for_buffers_since_ > limits::kStarvation;
  if (lingers) {
    close(true);
  } else if (!ignores_input() && (unread || unfed)) {
    end_.drop(unread ? "the peer does not read" : "no receive memory");
  }
  end_.tick();
}

void TcpConnection::over() { destroy_if_finished(); }

bool TcpConnection::finished() const {
  return end_.over() && receive_ == Receive::kIdle && send_ == Send::kIdle && !flush_scheduled_ &&
         discards_output();
}

void TcpConnection::destroy_if_finished() {
  if (destroy_scheduled_ || !finished()) return;
  destroy_scheduled_ = true;
  context_.deferred.destroy.push_back(this);
}

}  // namespace sluice::net
