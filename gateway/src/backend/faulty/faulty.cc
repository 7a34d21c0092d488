#include "faulty/faulty.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "backend/atomic_write.h"
#include "backend/options.h"
#include "backend/range.h"
#include "backend/size_text.h"
#include "base/clock.h"

namespace sluice::backend {
namespace {

struct NamedErrno {
  std::string_view name;
  int number;
};
constexpr std::array<NamedErrno, 14> kErrnos = {{{"EIO", EIO},
                                                 {"ENOSPC", ENOSPC},
                                                 {"ENODATA", ENODATA},
                                                 {"EBADMSG", EBADMSG},
                                                 {"EILSEQ", EILSEQ},
                                                 {"EREMOTEIO", EREMOTEIO},
                                                 {"ETIMEDOUT", ETIMEDOUT},
                                                 {"ENODEV", ENODEV},
                                                 {"ENXIO", ENXIO},
                                                 {"EAGAIN", EAGAIN},
                                                 {"EBUSY", EBUSY},
                                                 {"ENOMEM", ENOMEM},
                                                 {"EOPNOTSUPP", EOPNOTSUPP},
                                                 {"ESHUTDOWN", ESHUTDOWN}}};

Result<int> parse_errno(std::string_view text) {
  std::string known;
  for (const NamedErrno& e : kErrnos) {
    if (e.name == text) return e.number;
    known += " " + std::string(e.name);
  }
  return Error{"'" + std::string(text) + "' is not a known errno; valid:" + known};
}

constexpr uint64_t kMostDelayMs = 3'600'000;  // an hour; nanoseconds must fit AioOp::length

constexpr uint64_t kMostAtomic = uint64_t{32} << 20;  // bytes

Result<uint64_t> parse_count(std::string_view text) {
  uint64_t number = 0;
  auto [at, error] = std::from_chars(text.begin(), text.end(), number);
  if (error != std::errc() || at != text.end()) {
    return Error{"'" + std::string(text) + "' is not a whole number"};
  }
  return number;
}

constexpr std::array<std::string_view, 10> kKeys = {
    "read-error-every", "write-error-every", "flush-error-every", "errno",        "delay-every",
    "delay-ms",         "short-every",       "enospc-after",      "vanish-after", "atomic"};

uint64_t* count_of(FaultPlan& plan, std::string_view key) {
  const std::array<uint64_t*, 10> counts = {&plan.read_error_every,  &plan.write_error_every,
                                            &plan.flush_error_every, nullptr,
                                            &plan.delay_every,       &plan.delay_ms,
                                            &plan.short_every,       &plan.enospc_after,
                                            &plan.vanish_after,      &plan.atomic};
  return counts[static_cast<size_t>(std::find(kKeys.begin(), kKeys.end(), key) - kKeys.begin())];
}

Result<void> apply(const Option& option, FaultPlan& plan) {
  if (option.key == "errno") {
    Result<int> number = parse_errno(option.value);
    if (!number) return Error{number.error()};
    plan.error = *number;
    return {};
  }
  const bool is_size = option.key == "enospc-after" || option.key == "atomic";
  Result<uint64_t> count = is_size ? parse_size(option.value) : parse_count(option.value);
  if (!count) return Error{count.error()};
  if (option.key == "atomic" && (!std::has_single_bit(*count) || *count > kMostAtomic)) {
    return Error{"is no power of two up to 32MiB"};
  }
  if (option.key == "delay-ms" && *count > kMostDelayMs) {
    return Error{"is more than " + std::to_string(kMostDelayMs) + " (an hour)"};
  }
  *count_of(plan, option.key) = *count;
  return {};
}

bool nth(std::atomic<uint64_t>& counter, uint64_t every) {
  uint64_t n = counter.fetch_add(1, std::memory_order_relaxed) + 1;
  return every != 0 && n % every == 0;
}

}  // namespace

Result<FaultPlan> parse_faults(std::string_view text) {
  FaultPlan plan;
  for (const Option& option : split_options(text, ";,")) {
    if (std::find(kKeys.begin(), kKeys.end(), option.key) == kKeys.end()) {
      return Error{"fault: " + unknown_key(option.key, kKeys)};
    }
    Result<void> applied = apply(option, plan);
    if (!applied) return Error{"fault: " + std::string(option.key) + ": " + applied.error()};
  }
  return plan;
}

Result<std::unique_ptr<Backend>> with_faults(std::unique_ptr<Backend> inner, std::string_view text,
                                             uint32_t block_size) {
  if (text.empty()) return inner;
  Result<FaultPlan> plan = parse_faults(text);
  if (!plan) return Error{plan.error()};
  return std::unique_ptr<Backend>(std::make_unique<Faulty>(std::move(inner), *plan, block_size));
}

// The state of an Io that is not passed through directly.
struct Faulty::Pending {
  Faulty* self;
  Aio* aio;
  Verdict verdict;
  decltype(Io::done) done;
  void* context;
  iovec* iov;
  uint32_t iovcnt;
  uint64_t length;
  uint8_t flags;
  std::vector<iovec> half;

  // Shortens the request to its first half, in whole blocks, with a copy of the vectors.
  void cut(Io& io) {
    uint64_t left = io.length / 2 / self->block_size_ * self->block_size_;
    if (left == 0) return;
    io.length = left;
    for (uint32_t i = 0; left > 0; ++i) {
      half.push_back({iov[i].iov_base, std::min<uint64_t>(iov[i].iov_len, left)});
      left -= half.back().iov_len;
    }
    io.iov = half.data();
    io.iovcnt = static_cast<uint32_t>(half.size());
  }
  void restore(Io& io) const {
    io.done = done;
    io.context = context;
    io.iov = iov;
    io.iovcnt = iovcnt;
    io.length = length;
    io.flags = flags;
  }
};

Faulty::Faulty(std::unique_ptr<Backend> inner, const FaultPlan& plan, uint32_t block_size)
    : inner_(std::move(inner)), plan_(plan), block_size_(block_size), info_(inner_->info()) {
  if (plan.atomic != 0) info_.atomic_write_bytes = static_cast<uint32_t>(plan.atomic);
}

// This wrapper makes the promise: the backend behind it gets an ordinary write.
bool Faulty::claims(const Io& io) const {
  return plan_.atomic != 0 && io.op == Op::kWrite && (io.flags & kIoAtomic) != 0;
}

Faulty::Verdict Faulty::judge(const Io& io) {
  Verdict verdict;
  const uint64_t number = ios_.fetch_add(1, std::memory_order_relaxed) + 1;
  verdict.delay = plan_.delay_every != 0 && number % plan_.delay_every == 0;
  bool failed = false;
  if (io.op == Op::kRead) {
    failed = nth(reads_, plan_.read_error_every);
  } else if (io.op == Op::kFlush) {
    failed = nth(flushes_, plan_.flush_error_every);
  } else {
    failed = nth(writes_, plan_.write_error_every);
  }
  if (io.op == Op::kRead || (io.op == Op::kWrite && !(io.flags & kIoAtomic))) {
    verdict.cut = nth(transfers_, plan_.short_every);
  }
  if (failed) verdict.error = plan_.error;
  if (!failed && (io.op == Op::kWrite || io.op == Op::kWriteZeroes)) {
    uint64_t total = bytes_written_.fetch_add(io.length, std::memory_order_relaxed) + io.length;
    if (total > plan_.enospc_after) {
      bytes_written_.fetch_sub(io.length, std::memory_order_relaxed);
      verdict.error = ENOSPC;
    }
  }
  if (number > plan_.vanish_after) verdict.error = ENODEV;
  return verdict;
}

bool Faulty::submit(Io& io, Aio& aio) {
  // Faults of kCheckFence and kCdb are not part of the plan.
  if (io.op == Op::kCheckFence || io.op == Op::kCdb) return inner_->submit(io, aio);
  // Passes on invalid requests unchanged: half of one might be valid.
  if (io.op != Op::kFlush && !within(io.offset, io.length, size_bytes())) {
    return inner_->submit(io, aio);
  }
  if (claims(io)) {
    io.result = info_.read_only ? -EROFS : refuse_atomic(io, info_.atomic_write_bytes);
    if (io.result != 0) return true;
  }
  const Verdict verdict = judge(io);
  if (!verdict.delay) return go_on(io, aio, verdict);
  auto* pending = new Pending{this,   &aio,      verdict,   io.done,  io.context,
                              io.iov, io.iovcnt, io.length, io.flags, {}};
  io.context = pending;
  io.aio = AioOp{};
  io.aio.kind = AioOp::Kind::kTimeout;
  io.aio.length = plan_.delay_ms * static_cast<uint64_t>(kMillisecond);
  io.aio.done = &Faulty::on_delay_over;
  io.aio.context = &io;
  aio.submit(io.aio);
  return false;
}

void Faulty::on_delay_over(AioOp& op, int32_t) {
  Io& io = *static_cast<Io*>(op.context);
  const std::unique_ptr<Pending> pending(static_cast<Pending*>(io.context));
  pending->restore(io);
  if (pending->self->go_on(io, *pending->aio, pending->verdict)) io.done(io);
}

bool Faulty::go_on(Io& io, Aio& aio, const Verdict& verdict) {
  if (verdict.error != 0) {
    io.result = -verdict.error;
    return true;
  }
  const bool claimed = claims(io);
  if (!verdict.cut && !claimed) return inner_->submit(io, aio);
  auto pending = std::make_unique<Pending>(Pending{
      this, &aio, verdict, io.done, io.context, io.iov, io.iovcnt, io.length, io.flags, {}});
  if (verdict.cut) pending->cut(io);
  if (claimed) io.flags = static_cast<uint8_t>(io.flags & ~kIoAtomic);
  io.done = &Faulty::on_inner_done;
  io.context = pending.release();  // returned in on_inner_done(), or a few lines below
  if (!inner_->submit(io, aio)) return false;
  const std::unique_ptr<Pending> over(static_cast<Pending*>(io.context));
  over->restore(io);
  return true;
}

void Faulty::on_inner_done(Io& io) {
  const std::unique_ptr<Pending> pending(static_cast<Pending*>(io.context));
  pending->restore(io);
  io.done(io);
}

const uint8_t* Faulty::borrow(uint64_t offset, uint64_t length) const {
  // Lent memory would bypass the faults planned for reads.
  const bool reads_fault = plan_.read_error_every != 0 || plan_.delay_every != 0 ||
                           plan_.short_every != 0 || plan_.vanish_after != UINT64_MAX;
  return reads_fault ? nullptr : inner_->borrow(offset, length);
}

Result<void> Faulty::check() {
  if (ios_.load(std::memory_order_relaxed) >= plan_.vanish_after) {
    return Error{"the medium vanished (fault vanish-after=" + std::to_string(plan_.vanish_after) +
                 ")"};
  }
  return inner_->check();
}

}  // namespace sluice::backend
