#include "echo/ring.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "wire/tcp.h"

namespace sluice::bench {
namespace {

constexpr unsigned kEntries = 256;
constexpr unsigned kCompletions = 4096;  // multishot receives complete without a submission
constexpr uint16_t kGroup = 0;

void* map_pages(size_t size) {
  void* block = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (block == MAP_FAILED) die("no memory for receive buffers");
  return block;
}

}  // namespace

const char* name_of(Receive receive) {
  switch (receive) {
    case Receive::kIncremental:
      return "incremental";
    case Receive::kProvided:
      return "provided";
    case Receive::kPlain:
      break;
  }
  return "plain";
}

Ring::Ring(const RingOptions& options) : options_(options) {
  set_up_ring();
  if (options_.receive != Receive::kPlain) set_up_buffers();
}

Ring::~Ring() {
  io_uring_queue_exit(&ring_);
  const size_t entries = options_.buffers;
  if (buffer_ring_) munmap(buffer_ring_, entries * sizeof(io_uring_buf));
  if (memory_) munmap(memory_, entries * options_.buffer_size);
}

void Ring::set_up_ring() {
  io_uring_params params{};
  params.flags = IORING_SETUP_CQSIZE;
  params.cq_entries = kCompletions;
  setup_ = "none";
  if (options_.defer_taskrun) {
    params.flags |= IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
    setup_ = "single_issuer|defer_taskrun";
  }
  int error = io_uring_queue_init_params(kEntries, &ring_, &params);
  if (error == -EINVAL && options_.defer_taskrun) {  // kernel before 6.1
    params = {};
    params.flags = IORING_SETUP_CQSIZE;
    params.cq_entries = kCompletions;
    setup_ = "none";
    error = io_uring_queue_init_params(kEntries, &ring_, &params);
  }
  if (error < 0) die(std::string("io_uring_setup: ") + std::strerror(-error));
}

bool Ring::register_buffers(uint16_t flags) {
  io_uring_buf_reg reg{};
  reg.ring_addr = reinterpret_cast<uint64_t>(buffer_ring_);
  reg.ring_entries = options_.buffers;
  reg.bgid = kGroup;
  reg.pad = flags;
  const int error = io_uring_register_buf_ring(&ring_, &reg, 0);
  if (error == 0) return true;
  if (error == -EINVAL && flags != 0) return false;
  die(std::string("registering provided buffers: ") + std::strerror(-error));
}

void Ring::set_up_buffers() {
  const size_t entries = options_.buffers;
  buffer_ring_ = static_cast<io_uring_buf_ring*>(map_pages(entries * sizeof(io_uring_buf)));
  memory_ = static_cast<uint8_t*>(map_pages(entries * options_.buffer_size));
  if (options_.receive == Receive::kIncremental && !register_buffers(kPbufRingInc)) {
    options_.receive = Receive::kProvided;
  }
  if (options_.receive == Receive::kProvided) register_buffers(0);
  consumed_.assign(entries, 0);
  io_uring_buf_ring_init(buffer_ring_);
  const int mask = io_uring_buf_ring_mask(options_.buffers);
  for (uint32_t i = 0; i < options_.buffers; ++i) {
    const auto id = static_cast<uint16_t>(i);
    io_uring_buf_ring_add(buffer_ring_, buffer(id), options_.buffer_size, id, mask,
                          static_cast<int>(i));
  }
  io_uring_buf_ring_advance(buffer_ring_, static_cast<int>(options_.buffers));
}

io_uring_sqe* Ring::sqe() {
  io_uring_sqe* entry = io_uring_get_sqe(&ring_);
  if (!entry) {
    io_uring_submit(&ring_);
    entry = io_uring_get_sqe(&ring_);
  }
  if (!entry) die("submission queue stays full");
  return entry;
}

const uint8_t* Ring::received(const io_uring_cqe& cqe) const {
  const auto id = static_cast<uint16_t>(cqe.flags >> IORING_CQE_BUFFER_SHIFT);
  return buffer(id) + consumed_[id];
}

void Ring::release(const io_uring_cqe& cqe) {
  const auto id = static_cast<uint16_t>(cqe.flags >> IORING_CQE_BUFFER_SHIFT);
  if (cqe.flags & kCqeBufMore) {
    consumed_[id] += static_cast<uint32_t>(cqe.res);
    return;
  }
  consumed_[id] = 0;
  io_uring_buf_ring_add(buffer_ring_, buffer(id), options_.buffer_size, id,
                        io_uring_buf_ring_mask(options_.buffers), 0);
  io_uring_buf_ring_advance(buffer_ring_, 1);
}

}  // namespace sluice::bench
