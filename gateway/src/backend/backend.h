// The contract between a LUN and its storage. Read this header before you write a backend;
// backend/conformance.h has the test suite that every backend passes.
//
// - unit/unit -> null | memory | file | block -> Aio (net/) -> kernel
// - rbd (backend/rbd) -> librbd, whose threads complete through Aio
// - sg | nvme (backend/passthrough) -> commands of the device
//
// Threads: one Backend serves all reactors. Several reactors may call submit() at the same time for
// different Ios; it uses only atomic data and data that is immutable after open. All other
// functions, such as resize and close, run on one control thread while I/O continues.
//
// Order: none. Ios in flight may complete in any order; a caller that needs an order must wait
// (unit/ranges/ separates overlapping ranges, DESIGN R5).
//
// Durability: a completed kWrite with kIoFua, and any kWrite that completed while write_cache() was
// off, is on stable storage (DESIGN R12). A completed kFlush makes all writes durable that
// completed before it.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/aio.h"
#include "base/result.h"

namespace sluice::backend {

class Backend;

enum class Op : uint8_t {
  kRead,   // iov <- [offset, offset+length)
  kWrite,  // iov -> [offset, offset+length)
  kFlush,  // offset, length ignored
  // deallocates whole discard_granularity units inside the range; with Info::discard_zeroes the
  // *whole* range reads zeros afterwards
  kDiscard,
  kWriteZeroes,  // the range reads zeros; kIoMayUnmap allows deallocation
  // Moves no data; offset and length are ignored. 0: at some moment after the submission no other
  // gateway could own the data, so answers from memory are valid (DESIGN R2). -ESHUTDOWN: fenced.
  // Completes at once if a lock on this node proves it.
  kCheckFence,
  // Only if Info::takes_cdbs: the device executes Io::cdb, which changes no data and returns at
  // most `length` bytes in iov; offset is ignored. Result: bytes, may be 0.
  kCdb,
};

enum : uint8_t {
  // kWrite, kWriteZeroes, kDiscard: durable before completion, whatever the cache mode
  kIoFua = 1,
  kIoMayUnmap = 2,  // kWriteZeroes may deallocate
  // A kWrite of exactly Info::atomic_write_bytes, at a multiple of that size: never short, and all
  // or nothing even after a power failure. Another size or alignment: -EINVAL; if
  // Info::atomic_write_bytes is 0: -EOPNOTSUPP.
  kIoAtomic = 4,
};

// One request. The submitter owns it. The Io, its iovecs and their memory must stay valid and must
// not move until the request is complete.
struct Io {
  Op op = Op::kRead;
  uint8_t flags = 0;
  uint32_t iovcnt = 0;   // 1..IOV_MAX for kRead and kWrite, else 0
  iovec* iov = nullptr;  // sum of lengths == length for kRead and kWrite; not modified
  uint64_t offset = 0;   // bytes, multiple of the LUN's logical block size
  uint64_t length = 0;   // bytes, > 0 except for kFlush and kCheckFence
  // >= 0: bytes transferred for kRead and kWrite, 0 for other ops. A transfer may be short, but it
  // is a positive number of whole logical blocks; the submitter continues from there. < 0: negative
  // errno; the content of the range is then undefined, old or new. -ENOSPC also means an exhausted
  // quota. -EROFS: the backend is read-only. -EOPNOTSUPP: kDiscard is unsupported
  // (Info::discard_granularity is 0). -ESHUTDOWN: fenced. Another gateway may own the data (DESIGN
  // R4), so the command must not be answered.
  int64_t result = 0;
  std::array<uint8_t, 16> cdb;  // kCdb
  // The device's status and sense data if result < 0: from SCSI devices directly (sg), from NVMe
  // devices through the standard translation (nvme). The submitter sets status to 0 before.
  struct Answer {
    uint8_t status = 0;      // SAM-5 §5.3; 0: the device gave no status, only `result` counts
    uint8_t sense_size = 0;  // bytes
    std::array<uint8_t, 96> sense;  // unmodified; SPC-5 §4.4
  } answer;
  void (*done)(Io& io) = nullptr;
  void* context = nullptr;  // for the submitter
  // Used by the backend between submit and done; the submitter need not initialize it.
  AioOp aio;
  struct Private {
    Backend* backend = nullptr;
    Aio* aio = nullptr;  // the reactor's; completions continue with it
    iovec iov = {};
    uint64_t a = 0;
    uint64_t b = 0;
    uint64_t seen = 0;  // number of losses when the request began (writeback_losses.h)
    void* p = nullptr;
  } priv;
};

// Properties of the medium that SCSI reports to hosts. Immutable while open, except for the size
// (resize).
struct Info {
  // bytes; if above 1, iov bases should be multiples of it, and lengths multiples of the block
  // size. The backend copies other requests through bounce buffers.
  uint32_t memory_alignment = 1;
  uint32_t discard_granularity = 0;  // bytes; 0: kDiscard answers -EOPNOTSUPP
  uint64_t discard_alignment = 0;    // bytes
  bool discard_zeroes = false;       // discarded ranges read zeros (LBPRZ)
  bool thin = false;                 // unwritten ranges hold no space (LBPME)
  bool read_only = false;
  // Size of a kIoAtomic write: a power of two and at least a block. 0: no more than a logical block
  // is atomic.
  uint32_t atomic_write_bytes = 0;
  bool rotational = false;
  // memory from borrow() never changes, so digests over it stay valid
  bool lends_constants = false;
  bool takes_cdbs = false;  // kCdb
};

struct Extent {
  uint64_t length = 0;  // length in bytes, > 0, from the requested offset, with a uniform state
  bool allocated = true;
};

class Backend {
 public:
  // the caller ensures: no Io in flight; close() was called; borrowed memory is no longer used
  virtual ~Backend() = default;

  // Releases locks and descriptors without a flush, so that the next owner can take them (DESIGN
  // R2). No Io is in flight and none follows. Memory from borrow() stays valid until the
  // destructor. Never blocks: work that needs the network (rbd) runs on another thread, and the
  // next open() of the same data in this process waits for it.
  //
  // `closed` is called exactly once per call, when all locks are released: during the call, or
  // later on any thread, possibly after the destructor. A second close() also calls its callback.
  // The destructor of an unclosed backend does the same without a callback.
  virtual void close(std::function<void()> closed) { closed(); }

  // For a process that ends without destroying its backends: makes written data durable, as the
  // destructor of an unclosed backend does. May wait for the medium. Any thread.
  virtual void sync_cache() {}

  virtual const Info& info() const = 0;
  virtual uint64_t size_bytes() const = 0;  // atomic

  // True: the Io is complete, io.result is set and done is NOT called. False: done(io) will be
  // called exactly once, later, on this reactor's thread. Requests beyond size_bytes() fail with
  // -EINVAL.
  virtual bool submit(Io& io, Aio& aio) = 0;

  // Memory that holds the range, for backends that have it; READ then sends from there. Valid while
  // the Backend lives; a concurrent write may change the content. nullptr: submit a kRead instead.
  virtual const uint8_t* borrow(uint64_t /*offset*/, uint64_t /*length*/) const { return nullptr; }

  // The configured write cache (DESIGN R12): if on, a kWrite may complete before it is durable.
  virtual bool write_cache() const = 0;
  // Sets how later kWrites complete; any thread, never blocks, does not flush. Writes that were
  // submitted while the cache was on are durable after a subsequent kFlush (unit/write_cache.h).
  // Error: the backend can't do it, for example because the drive's own cache is off.
  virtual Result<void> set_write_cache(bool on) = 0;

  // Calls `op.call(op)`, which may use allocation() and free_bytes(), where they delay no other
  // medium. True: it was called. False: op.done() will be called, as for submit(). For reactors.
  virtual bool run_query(AioOp& op, Aio& /*aio*/) {
    op.call(op);
    return true;
  }
  // Allocation state at `offset`; examines at most `limit` bytes. May wait for the medium. Any
  // thread.
  virtual Result<Extent> allocation(uint64_t offset, uint64_t limit) const = 0;
  // Bytes that can still be allocated to this LUN; UINT64_MAX: unknown or unlimited. May wait for
  // the medium. Any thread.
  virtual uint64_t free_bytes() const { return UINT64_MAX; }

  // Grows a file to `new_size`. For a device, adopts its present size, which must equal `new_size`
  // unless that is 0. Shrinking is an error, because it would lose data.
  virtual Result<void> resize(uint64_t new_size) = 0;

  // Whether the medium is available. Called about once a second, outside the I/O path. If the file
  // or device has vanished, the result is an error text; the unit answers NOT READY until it is ok
  // again (02/04/00, because 02/3A/00 is for removable media). When it returns, size_bytes()
  // includes an external growth.
  virtual Result<void> check() = 0;

  // The device, file system or pool that check() and location_problem() wait for: if it hangs, they
  // hang, for all backends with the same text. Empty: they wait for nothing. It does not change,
  // and is known without a system call.
  virtual std::string hangs_with() const { return {}; }

  // Why the name that open() used now refers to another object or to none; empty: it refers to this
  // one, or the backend has no name. Commands still succeed, but the next open() would find other
  // data. Called after check(), by the same thread.
  virtual std::string location_problem() const { return {}; }
};

// How to reach a Ceph cluster, and as which user. Messages never contain a key.
struct CephAccess {
  std::string config_file;  // empty: none if `monitors` is set, else /etc/ceph/ceph.conf
  // as in mon_host: addresses separated by commas; empty: from config_file
  std::string monitors;
  std::string user;          // `sluice` for client.sluice; empty: admin
  std::string keyring_file;  // empty: from config_file
  std::string key;           // the secret itself, base64; instead of a keyring
  bool operator==(const CephAccess&) const = default;
};

// The configuration of a backend. backend/spec.h parses its text form, such as
// `file:/path,size=1GiB,io=buffered`, and documents the keys.
struct Spec {
  std::string kind;  // null | memory | file | block | sg | nvme | rbd
  std::string path;  // file, device; rbd: pool/image or pool/namespace/image
  // bytes; multiple of block_size. 0: the present size of the file or device
  uint64_t size = 0;
  uint32_t block_size = 512;  // logical: 512 or 4096
  bool direct = false;        // file: io=direct (O_DIRECT); block is always direct
  bool write_cache = false;
  bool read_only = false;
  bool create = true;  // file: create it (sparse) if it is missing; needs size
  CephAccess ceph;     // rbd
  // rbd: after fencing, check() opens the image again with a new client. Off in a cluster: only the
  // control plane knows who owns the image then (DESIGN R4).
  bool reopen_after_fence = true;
};

// Opens and locks the data (DESIGN R2): flock on the file description that does the I/O, O_EXCL for
// block devices, the exclusive lock of an image. The error names the path, the cause and the
// remedy.
Result<std::unique_ptr<Backend>> open(const Spec& spec);

// Opens a kind that a separate room implements (rbd::install(), passthrough::install()), in
// programs that link it. `kind`: rbd, sg or nvme.
using Opener = Result<std::unique_ptr<Backend>> (*)(const Spec& spec);
void set_opener(std::string_view kind, Opener opener);

}  // namespace sluice::backend
