// Wraps a backend and injects failures deterministically: faults are counted, not random. For
// tests only: no program that ships links this room. Every faulted Io allocates memory.
//
// The text form is a list of key=value separated by ';' or ',':
//   read-error-every=N     the Nth, 2Nth, ... kRead fails; likewise:
//   write-error-every=N    kWrite, kDiscard and kWriteZeroes together
//   flush-error-every=N
//   errno=EIO              what these fail with (default EIO)
//   delay-every=N          the Nth, 2Nth, ... Io of any kind waits first, for:
//   delay-ms=MS            (default 1)
//   short-every=N          the Nth, 2Nth, ... kRead and kWrite transfers only its first half
//   enospc-after=SIZE      once SIZE bytes are written, kWrite and kWriteZeroes fail with ENOSPC
//   atomic=SIZE            claims kIoAtomic for SIZE bytes, whatever the backend behind it says;
//                          such writes are never cut short
//   vanish-after=N         after N Ios every Io fails with ENODEV and check() reports it
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <string_view>

#include "backend/backend.h"
#include "base/result.h"

namespace sluice::backend {

// 0: never, for each counter.
struct FaultPlan {
  uint64_t read_error_every = 0;
  uint64_t write_error_every = 0;
  uint64_t flush_error_every = 0;
  int error = EIO;  // errno
  uint64_t delay_every = 0;
  uint64_t delay_ms = 1;
  uint64_t short_every = 0;
  uint64_t enospc_after = UINT64_MAX;  // bytes
  uint64_t vanish_after = UINT64_MAX;  // Ios
  uint64_t atomic = 0;                 // bytes; 0: as the backend behind it says
};

Result<FaultPlan> parse_faults(std::string_view text);

// `inner` with the faults of this text, or `inner` itself if the text is empty. Short transfers end
// at a multiple of `block_size`.
Result<std::unique_ptr<Backend>> with_faults(std::unique_ptr<Backend> inner, std::string_view text,
                                             uint32_t block_size);

class Faulty final : public Backend {
 public:
  // block_size: short transfers end at a multiple of it
  Faulty(std::unique_ptr<Backend> inner, const FaultPlan& plan, uint32_t block_size);

  const Info& info() const override { return info_; }
  uint64_t size_bytes() const override { return inner_->size_bytes(); }
  bool submit(Io& io, Aio& aio) override;
  const uint8_t* borrow(uint64_t offset, uint64_t length) const override;
  void close(std::function<void()> closed) override { inner_->close(std::move(closed)); }
  bool write_cache() const override { return inner_->write_cache(); }
  Result<void> set_write_cache(bool on) override { return inner_->set_write_cache(on); }
  bool run_query(AioOp& op, Aio& aio) override { return inner_->run_query(op, aio); }
  Result<Extent> allocation(uint64_t offset, uint64_t limit) const override {
    return inner_->allocation(offset, limit);
  }
  uint64_t free_bytes() const override { return inner_->free_bytes(); }
  Result<void> resize(uint64_t new_size) override { return inner_->resize(new_size); }
  Result<void> check() override;
  std::string hangs_with() const override { return inner_->hangs_with(); }

 private:
  struct Verdict {
    int error = 0;  // errno
    bool delay = false;
    bool cut = false;
  };
  struct Pending;

  bool claims(const Io& io) const;
  Verdict judge(const Io& io);
  bool go_on(Io& io, Aio& aio, const Verdict& verdict);
  static void on_delay_over(AioOp& op, int32_t result);
  static void on_inner_done(Io& io);

  std::unique_ptr<Backend> inner_;
  const FaultPlan plan_;
  const uint32_t block_size_;
  Info info_;
  std::atomic<uint64_t> ios_ = 0;
  std::atomic<uint64_t> reads_ = 0;
  std::atomic<uint64_t> writes_ = 0;
  std::atomic<uint64_t> flushes_ = 0;
  std::atomic<uint64_t> transfers_ = 0;
  std::atomic<uint64_t> bytes_written_ = 0;
};

}  // namespace sluice::backend
