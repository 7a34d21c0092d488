// A backend whose data lies behind a file descriptor: the I/O path that files and block devices
// share. What differs (locking, growing, finding out what vanished) is in file.cc and block.cc.
//
//   submit -> transfer: [mapping] [inline attempt | bounce] -> Aio -> [fdatasync] -> done
//          -> range:    fallocate or BLKDISCARD, next best method when refused -> [fdatasync]
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "backend/backend.h"
#include "backend/bounce.h"
#include "backend/discarder.h"
#include "backend/mapped_window.h"
#include "backend/truncation_sentinel.h"

namespace sluice::backend {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor();
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// Whether reads and writes are tried on the submitting thread first.
enum class Inline : uint8_t {
  kNever,   // direct I/O: always waits for a device
  kNowait,  // buffered: RWF_NOWAIT answers from the page cache or refuses
  kAlways,  // tmpfs: knows no RWF_NOWAIT and has no device to wait for
};

// Ways to zero or deallocate a range, best first. When the kernel refuses one, the next is used
// from then on.
enum class RangeMethod : uint8_t {
  kPunchHole,      // fallocate: deallocates, reads zeros
  kZeroRange,      // fallocate: keeps the allocation, reads zeros
  kWriteZeros,     // always works
  kDeviceDiscard,  // BLKDISCARD: promises no contents; when the ring refuses it, on a thread
};

class Descriptor : public Backend {
 public:
  ~Descriptor() override;
  const Info& info() const override { return info_; }
  uint64_t size_bytes() const override { return size_.load(std::memory_order_acquire); }
  bool submit(Io& io, Aio& aio) override;
  const uint8_t* borrow(uint64_t offset, uint64_t length) const override;
  void close(std::function<void()> closed) override;
  bool write_cache() const override { return write_cache_.load(std::memory_order_relaxed); }
  Result<void> set_write_cache(bool on) override;

 protected:
  // What open() found out about the medium.
  struct Setup {
    FileDescriptor fd;
    Info info;
    uint64_t size = 0;             // bytes
    uint64_t base = 0;             // bytes of the medium in front of the LUN's first
    uint32_t atomic_segments = 0;  // vectors of a kIoAtomic write
    Inline inline_io = Inline::kNever;
    RangeMethod discard = RangeMethod::kPunchHole;
    // Nothing survives power loss whatever is flushed (tmpfs): syncing is time wasted.
    bool ephemeral = false;
    std::unique_ptr<MappedWindow> window;  // tmpfs only, and may be missing there
    bool is_device = false;                // a block device
    // Of a file. nullptr where it can't be mapped: then every request asks for the file's size.
    std::unique_ptr<TruncationSentinel> sentinel;
  };
  Descriptor(const Spec& spec, Setup setup);

  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }
  uint32_t block_size() const { return block_size_; }
  uint64_t base() const { return base_; }
  TruncationSentinel* sentinel() const { return sentinel_.get(); }
  // Whether the medium is, or once was, shorter than its LUN; asks the kernel for its size. From
  // then on every request but kVouch fails with -EIO, until the data is opened anew.
  bool is_cut_short();
  void set_size(uint64_t bytes) { size_.store(bytes, std::memory_order_release); }
  void refuse(RangeMethod method) {
    refused_.fetch_or(static_cast<uint8_t>(1u << static_cast<unsigned>(method)),
                      std::memory_order_relaxed);
  }

 private:
  int64_t refuse_write(const Io& io);
  bool transfer(Io& io);
  bool misaligned(const Io& io) const;
  bool bounce(Io& io);
  void unbounce(Io& io, int64_t transferred);
  bool try_mapped(Io& io);
  bool try_inline(Io& io);
  bool try_nowait(Io& io);
  void note_written(const Io& io);
  static void on_transferred(AioOp& op, int32_t result);
  // Of a negative errno of the kernel.
  static int64_t contract_errno(int64_t result);
  int64_t settle(const Io& io, int64_t result) const;

  bool range(Io& io);
  bool range_step(Io& io);
  bool range_advance(Io& io, int64_t result);
  static void on_range_step(AioOp& op, int32_t result);
  bool refused(RangeMethod method) const {
    return (refused_.load(std::memory_order_relaxed) >> static_cast<unsigned>(method) & 1) != 0;
  }

  uint64_t medium_bytes() const;
  void latch_cut_short(uint64_t bytes);
  // As is_cut_short(), without a system call where there is a sentinel.
  bool has_lost_its_end();
  // Whether writing could give a truncated file its length again, with zeros for the lost data.
  bool may_extend(const Io& io);
  // Of a complete request: -EIO if the medium was cut short before or meanwhile.
  void judge(Io& io);

  bool must_be_durable(const Io& io) const;
  bool is_loss(const Io& io, int64_t result) const;
  int64_t outcome(const Io& io, int64_t result);
  bool sync(Io& io, int64_t result);
  static void on_synced(AioOp& op, int32_t result);

  const FileDescriptor fd_;
  const Info info_;
  const std::string path_;
  const uint32_t block_size_;
  const uint64_t base_;
  const uint32_t atomic_segments_;
  const Inline inline_io_;
  const RangeMethod discard_;
  const bool ephemeral_;
  const bool is_device_;
  const std::unique_ptr<MappedWindow> window_;
  const std::unique_ptr<TruncationSentinel> sentinel_;
  std::atomic<uint64_t> size_;
  std::atomic<bool> write_cache_;
  std::atomic<bool> closed_ = false;
  // The data behind the new end is lost even if the length is restored later.
  std::atomic<bool> cut_short_ = false;
  // Learnt from refusals, read on every Io, written a handful of times in a lifetime.
  std::atomic<uint8_t> refused_ = 0;  // bit per RangeMethod
  std::atomic<bool> dsync_refused_ = false;
  // Times that the medium failed to take what was to be durable.
  std::atomic<uint64_t> losses_ = 0;
  // The loss after which a flush was last told of one.
  std::atomic<uint64_t> flushed_at_ = 0;
  std::atomic<bool> nowait_reads_refused_ = false;
  std::atomic<bool> nowait_writes_refused_ = false;
  std::atomic<uint32_t> skip_nowait_ = 0;  // Ios that go to the Aio unattempted after a miss
  BouncePool bounces_;
  Discarder discarder_;
};

}  // namespace sluice::backend
