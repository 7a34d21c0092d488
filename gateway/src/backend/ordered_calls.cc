#include "backend/ordered_calls.h"

#include <sys/uio.h>

#include <utility>

#include "backend/blocking_call.h"

namespace sluice::backend {
namespace {

// The most data that waits for one sync.
constexpr uint64_t kMostUnsynced = uint64_t{8} << 20;  // bytes

bool shares_sync(const AioOp* op) {
  return op != nullptr && (op->kind == AioOp::Kind::kFdatasync || op->shares_sync);
}

// Operations whose data is written and not synced. The file has no other data of that kind, so
// their results are those of one fdatasync.
class Group {
 public:
  bool empty() const { return ops_.empty(); }
  bool full() const { return bytes_ >= kMostUnsynced; }
  void add(AioOp& op) {
    op.result = 0;
    if (op.kind == AioOp::Kind::kWritev) {
      op.rw_flags &= ~RWF_DSYNC;
      op.result = run_blocking(op);
      op.rw_flags |= RWF_DSYNC;
      bytes_ += op.length;
    }
    fd_ = op.fd;
    ops_.push(op);
  }
  void sync() {
    AioOp call;
    call.kind = AioOp::Kind::kFdatasync;
    call.fd = fd_;
    const int32_t synced = run_blocking(call);
    while (AioOp* op = ops_.pop()) {
      int32_t result = op->result;
      if (result >= 0 && synced < 0) {
        result = synced;
        op->kind = AioOp::Kind::kFdatasync;
      }
      op->aio->complete(*op, result);
    }
    bytes_ = 0;
  }

 private:
  AioList ops_;
  uint64_t bytes_ = 0;
  int fd_ = -1;
};

}  // namespace

void run_in_order(AioList& batch) {
  Group group;
  while (AioOp* op = batch.pop()) {
    const bool shares = shares_sync(op);
    const bool next_shares = shares_sync(batch.front());
    if (!shares || (group.empty() && !next_shares)) {
      op->aio->complete(*op, run_blocking(*op));
      continue;
    }
    group.add(*op);
    if (!next_shares || group.full()) group.sync();
  }
}

}  // namespace sluice::backend
