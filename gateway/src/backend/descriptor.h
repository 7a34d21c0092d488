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
#include "backend/discarder.h"
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

// Ways to zero or deallocate a range, best first. If the kernel refuses one, the next is used from
// then on.
enum class RangeMethod : uint8_t {
  kPunchHole,   // fallocate: deallocates, reads zeros
  kZeroRange,   // fallocate: keeps the allocation, reads zeros
  kWriteZeros,  // always supported
  // BLKDISCARD: the content is undefined afterwards; runs on a thread if the ring refuses it
  kDeviceDiscard,
};

class Descriptor : public Backend {
 public:
  ~Descriptor() override;
  const Info& info() const override { return info_; }
  uint64_t size_bytes() const override { return size_.load(std::memory_order_acquire); }
  bool submit(Io& io, Aio& aio) override;
  void close(std::function<void()> closed) override;
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

  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }
  uint32_t block_size() const { return block_size_; }
  uint64_t base() const { return base_; }
  TruncationSentinel* sentinel() const { return sentinel_.get(); }
  // Whether the medium is shorter than its LUN, or ever was; queries the kernel for its size. From
  // then on every request except kCheckFence fails with -EIO until the data is opened again.
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
  bool try_page_cache(Io& io);
  static void on_transferred(AioOp& op, int32_t result);
  // Converts a negative errno of the kernel into one of the contract.
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
  // As is_cut_short(), but without a system call if there is a sentinel.
  bool has_lost_its_end();
  // Whether the write could extend a truncated file, which would replace lost data by zeros.
  bool may_extend(const Io& io);
  // Changes the result of a completed request to -EIO if the medium was truncated before or
  // meanwhile.
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
  const bool buffered_;
  const RangeMethod discard_;
  const bool is_device_;
  const std::unique_ptr<TruncationSentinel> sentinel_;
  std::atomic<uint64_t> size_;
  std::atomic<bool> write_cache_;
  std::atomic<bool> closed_ = false;
  // Data behind the new end is lost even if the length is restored later.
  std::atomic<bool> cut_short_ = false;
  // Set when the kernel refuses an operation; read on every Io, written rarely.
  std::atomic<uint8_t> refused_ = 0;  // bit per RangeMethod
  std::atomic<bool> dsync_refused_ = false;
  // How often the medium failed to store data that had to be durable.
  std::atomic<uint64_t> losses_ = 0;
  // The number of losses that a flush reported last.
  std::atomic<uint64_t> flushed_at_ = 0;
  std::atomic<bool> nowait_reads_refused_ = false;
  std::atomic<bool> nowait_writes_refused_ = false;
  // number of Ios that skip the attempt after a miss
  std::atomic<uint32_t> skip_nowait_ = 0;
  BouncePool bounces_;
  Discarder discarder_;
};

}  // namespace sluice::backend
