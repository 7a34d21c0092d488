#include "passthrough/sg_channel.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "backend/failure.h"
#include "backend/zeros.h"

namespace sluice::passthrough {
namespace {

using backend::Io;
using backend::Op;

}  // namespace

SgChannel::SgChannel(Aio& aio, SgShared& shared, FileDescriptor fd)
    : Channel(aio), shared_(shared), fd_(std::move(fd)), requests_(kDepth) {
  for (Request& request : requests_) {
    request.next = free_;
    free_ = &request;
  }
  shared_.channels.fetch_add(1, std::memory_order_relaxed);
}

Result<std::unique_ptr<Channel>> SgChannel::open(Aio& aio, SgShared& shared) {
  const std::string same = "/proc/self/fd/" + std::to_string(shared.fd);
  FileDescriptor fd(::open(same.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return backend::fail("sg", "can't open once more: " + backend::why(errno), "");
  // While the first one is alive, its number is no other device's.
  sg_scsi_id id = {};
  if (ioctl(shared.fd, SG_GET_SCSI_ID, &id) != 0) {
    return backend::fail("sg", "the device is gone: " + backend::why(errno), "");
  }
  return std::unique_ptr<Channel>(new SgChannel(aio, shared, std::move(fd)));
}

// The device's queue, shared by the reactors that use it: one of them must not have to wait for a
// tag, because write(2) does that.
unsigned SgChannel::limit() const {
  const unsigned channels = std::max(1u, shared_.channels.load(std::memory_order_relaxed));
  return std::clamp(shared_.queue_depth / channels, 1u, kDepth);
}

bool SgChannel::must_be_durable(const Io& io) const {
  return (io.flags & backend::kIoFua) != 0 || !shared_.write_cache.load(std::memory_order_relaxed);
}

void SgChannel::describe_data(Request& request, sg_io_hdr& header) const {
  const SgStep& step = request.step;
  const Io& io = *request.io;
  header.dxfer_direction = step.data == 0   ? SG_DXFER_NONE
                           : step.to_device ? SG_DXFER_TO_DEV
                                            : SG_DXFER_FROM_DEV;
  header.dxfer_len = step.data;
  if (step.source == Source::kList) {
    header.dxferp = request.step.list.data();
  } else if (step.source == Source::kZeros) {
    header.dxferp = const_cast<uint8_t*>(backend::zeros());  // never written through
  } else if (step.source == Source::kIov) {
    trim(io, step.data, request.iov);
    const bool one = request.iov.size() == 1;
    header.iovec_count = one ? 0 : static_cast<uint16_t>(request.iov.size());
    header.dxferp = one ? request.iov.front().iov_base : static_cast<void*>(request.iov.data());
  }
}

void SgChannel::give_back(Request& request) {
  request.io = nullptr;
  request.next = free_;
  free_ = &request;
}

Channel::Sent SgChannel::not_sent(Request& request, int error) {
  Io& io = *request.io;
  give_back(request);
  // The driver's or the device's queue is full.
  if (error == EDOM || error == EAGAIN || error == EBUSY) return Sent::kFull;
  io.result = error == ENXIO ? -ENODEV : -error;
  return Sent::kOver;
}

Channel::Sent SgChannel::send(Io& io) {
  if (!free_) return Sent::kFull;
  Request& request = *free_;
  free_ = request.next;
  request.io = &io;
  request.step = next_step(io, shared_.traits, must_be_durable(io),
                           shared_.write_same.load(std::memory_order_relaxed));
  sg_io_hdr header = {};
  header.interface_id = 'S';
  header.cmd_len = request.step.cdb_length;
  header.cmdp = request.step.cdb.data();
  header.mx_sb_len = static_cast<unsigned char>(request.sense.size());
  header.sbp = request.sense.data();
  header.timeout = request.step.timeout;
  header.usr_ptr = &request;
  describe_data(request, header);
  ssize_t n = 0;
  do {
    n = ::write(fd_.get(), &header, sizeof header);
  } while (n < 0 && errno == EINTR);
  return n < 0 ? not_sent(request, errno) : Sent::kSent;
}

Channel::Collected SgChannel::collect() {
  sg_io_hdr header = {};
  header.interface_id = 'S';
  header.pack_id = -1;  // whichever has ended
  ssize_t n = 0;
  do {
    n = ::read(fd_.get(), &header, sizeof header);
  } while (n < 0 && errno == EINTR);
  if (n < 0) {
    // EAGAIN: none has ended. Anything else: the device is going; its last commands end soon.
    if (errno != EAGAIN) check_again_soon();
    return {};
  }
  Request& request = *static_cast<Request*>(header.usr_ptr);
  Io& io = *request.io;
  const bool over = settle(request, header);
  give_back(request);
  return {&io, over};
}

// True: the request is over.
bool SgChannel::settle(Request& request, const sg_io_hdr& header) {
  Io& io = *request.io;
  const ByteView sense = ByteView(request.sense).first(header.sb_len_wr);
  const SgOutcome outcome = outcome_of(header, sense);
  if (outcome.error != 0) return failed(request, outcome, header);
  Progress progress(io);
  progress.succeeded();
  const auto resid = static_cast<uint64_t>(std::max(0, header.resid));
  const uint64_t moved = request.step.data - std::min<uint64_t>(resid, request.step.data);
  if (io.op == Op::kCdb) {
    io.result = static_cast<int64_t>(moved);
    return true;
  }
  if (progress.stage() == Progress::Stage::kFlush) {
    io.result = io.op == Op::kWrite ? static_cast<int64_t>(progress.done()) : 0;
    return true;
  }
  if (io.op == Op::kRead || io.op == Op::kWrite) {
    const uint64_t whole = moved - moved % shared_.traits.medium.block_size;
    io.result = whole == 0 ? -EIO : static_cast<int64_t>(whole);
    if (whole == 0 || !needs_flush(io, shared_.traits, must_be_durable(io))) return true;
    progress.done() = whole;
    progress.flush_next();
    return false;
  }
  io.result = 0;
  progress.done() += request.step.bytes;
  if (progress.done() < io.length) return false;
  if (!needs_flush(io, shared_.traits, must_be_durable(io))) return true;
  progress.flush_next();
  return false;
}

bool SgChannel::failed(Request& request, const SgOutcome& outcome, const sg_io_hdr& header) {
  Io& io = *request.io;
  if (outcome.retry && Progress(io).retry()) return false;
  if (outcome.refused && request.step.cdb[0] == 0x93 && io.op == Op::kWriteZeroes) {
    shared_.write_same.store(false, std::memory_order_relaxed);  // zeros are written from now on
    return false;
  }
  io.result = -outcome.error;
  if (outcome.answered) {
    io.answer.status = header.status;
    io.answer.sense_size = header.sb_len_wr;
    io.answer.sense = request.sense;
  }
  return true;
}

}  // namespace sluice::passthrough
