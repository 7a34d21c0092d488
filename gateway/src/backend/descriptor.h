// The common I/O path of backends whose data is behind a file descriptor: files and block devices.
// file.cc and block.cc implement locking, growth and the detection of lost media.
//
//   submit -> transfer: [page cache | bounce] -> Aio -> [fdatasync] -> done
//          -> range:    fallocate or BLKDISCARD, next best method when refused -> [fdatasync]
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "backend/backend.h"
#include "backend/bounce.h"
#include "backend/device_threads.h"
#include "backend/medium_watch.h"
#include "backend/open_file.h"
#include "backend/range_eraser.h"
#include "backend/truncation_sentinel.h"
#include "backend/writeback_losses.h"
#include "base/file_descriptor.h"

namespace sluice::backend {

// The name that the control rooms use.
using sluice::FileDescriptor;

class Descriptor : public Backend {
 public:
  ~Descriptor() override;
  const Info& info() const override { return info_; }
  uint64_t size_bytes() const override { return medium_.size_bytes(); }
  bool submit(Io& io, Aio& aio) override;
  void close(std::function<void()> closed) override;
  void sync_cache() override;
  std::string hangs_with() const override { return hangs_with_; }
  bool write_cache() const override { return write_cache_.load(std::memory_order_relaxed); }
  Result<void> set_write_cache(bool on) override;

 protected:
  // Properties of the medium that open() determined.
  struct Setup {
    FileDescriptor fd;
    Info info;
    uint64_t size = 0;             // bytes
    uint64_t base = 0;             // bytes of the medium in front of the LUN
    uint32_t atomic_segments = 0;  // maximum number of vectors of a kIoAtomic write
    bool buffered = false;         // through the page cache; else direct I/O
    RangeMethod discard = RangeMethod::kPunchHole;
    bool is_device = false;  // a block device
    // For a file. nullptr if it can't be mapped: then every request queries the file's size.
    std::unique_ptr<TruncationSentinel> sentinel;
  };
  Descriptor(const Spec& spec, Setup setup);

  int fd() const { return file_.fd(); }
  const std::string& path() const { return path_; }
  uint32_t block_size() const { return block_size_; }
  uint64_t base() const { return base_; }
  MediumWatch& medium() { return medium_; }
  DeviceThreads& threads() const { return *device_; }
  void refuse(RangeMethod method) { eraser_.refuse(method); }

 private:
  int64_t refuse_write(const Io& io);
  bool transfer(Io& io);
  void submit_transfer(Io& io);
  bool misaligned(const Io& io) const;
  bool bounce(Io& io);
  void unbounce(Io& io, int64_t transferred);
  bool try_page_cache(Io& io);
  static void on_transferred(AioOp& op, int32_t result);
  int64_t settle(const Io& io, int64_t result) const;

  bool range(Io& io);
  bool end_range(Io& io, RangeEraser::Progress progress);
  static void on_range_step(AioOp& op, int32_t result);
  // Changes the result of a completed request to -EIO if the medium was truncated before or
  // meanwhile.
  void judge(Io& io);

  bool must_be_durable(const Io& io) const;
  // Whether data that was acknowledged may be in the page cache only.
  bool must_sync_at_end() const;
  int64_t outcome(const Io& io, int64_t result);
  bool sync(Io& io, int64_t result);
  static void on_synced(AioOp& op, int32_t result);

  OpenFile file_;
  const Info info_;
  const std::string path_;
  const std::string hangs_with_;
  const uint32_t block_size_;
  const uint64_t base_;
  const uint32_t atomic_segments_;
  const bool buffered_;
  const std::shared_ptr<DeviceThreads> device_;
  // Writes to the page cache: the file system locks the file for each, so two threads would only
  // wait for each other.
  const std::shared_ptr<BlockingCalls::Strand> writes_;
  // All calls that report a writeback error. The kernel reports it once, so these calls must end in
  // the order in which the kernel checks for it (writeback_losses.h).
  const std::shared_ptr<BlockingCalls::Strand> syncs_;
  MediumWatch medium_;
  RangeEraser eraser_;
  WritebackLosses losses_;
  BouncePool bounces_;
  std::atomic<bool> write_cache_;
  std::atomic<bool> closed_ = false;
  // Set when the kernel refuses an operation; read on every Io, written rarely.
  std::atomic<bool> dsync_refused_ = false;
  std::atomic<bool> nowait_reads_refused_ = false;
  std::atomic<bool> nowait_writes_refused_ = false;
  std::atomic<bool> nowait_direct_refused_ = false;
};

}  // namespace sluice::backend
