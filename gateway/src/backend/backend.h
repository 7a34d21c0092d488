// The contract between a LUN and the place its data lives. The one header to read before writing
// a backend; backend/conformance.h holds the suite that every backend passes.
//
//   unit/unit -> [faulty] -> null | memory | file | block      -> Aio (net/) -> kernel
//                           rbd (backend/rbd)                 -> librbd, whose threads end by Aio
//                           sg | nvme (backend/passthrough)   -> the device's own commands
//
// Threads: one Backend serves all reactors. submit() may run on several reactors at once for
// different Io; what it touches is immutable after open or atomic. Everything else (resize,
// close) runs on one control thread while I/O goes on.
// Order: none. Two Ios in flight at once may complete in any order; whoever needs order waits
// (unit/ranges/ keeps overlapping ranges apart, DESIGN R5).
// Durability: a completed kWrite with fua, or any completed kWrite while write_cache() is off,
// has reached stable storage (DESIGN R12). A completed kFlush makes all earlier completed writes
// durable.
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
  kRead,         // iov <- [offset, offset+length)
  kWrite,        // iov -> [offset, offset+length)
  kFlush,        // offset, length ignored
  kDiscard,      // deallocate whole discard_granularity units inside the range; with
                 // Info::discard_zeroes the *whole* range reads zeros afterwards
  kWriteZeroes,  // the range reads zeros; kIoMayUnmap allows deallocation
  kVouch,  // offset, length ignored; moves nothing. 0: since it was submitted there was a moment at
           // which nobody else could own the data, so what is known of it may be answered from
           // memory (DESIGN R2); -ESHUTDOWN: fenced. At once where a lock of this node says so.
  kCdb,    // only where Info::takes_cdbs: the device executes Io::cdb, which changes nothing and
           // answers at most `length` bytes into iov; offset ignored. Result: bytes, 0 too.
};

enum : uint8_t {
  kIoFua = 1,       // kWrite, kWriteZeroes, kDiscard: durable first, whatever the cache mode
  kIoMayUnmap = 2,  // kWriteZeroes may deallocate
  kIoAtomic = 4,  // kWrite of exactly Info::atomic_write_bytes at a multiple of them: never short,
                  // and whole or not at all even after power loss. Of another size or place:
                  // -EINVAL; where Info promises none: -EOPNOTSUPP.
};

// One request. The submitter owns it and keeps it, its iovecs and their memory alive and unmoved
// until it is complete.
struct Io {
  Op op = Op::kRead;
  uint8_t flags = 0;
  uint32_t iovcnt = 0;   // 1..IOV_MAX for kRead and kWrite, else 0
  iovec* iov = nullptr;  // sum of lengths == length for kRead and kWrite; not modified
  uint64_t offset = 0;   // bytes, multiple of the LUN's logical block size
  uint64_t length = 0;   // bytes, > 0 except for kFlush and kVouch
  // >= 0: bytes transferred (kRead, kWrite; may be short, but whole logical blocks and not 0: the
  // submitter goes on from there) or 0 for the other ops. < 0: negative errno, the state of the
  // range is then undefined between old and new. -ENOSPC also stands for an exhausted quota;
  // -EROFS: the backend is read-only; -EOPNOTSUPP: no kDiscard (Info::discard_granularity 0);
  // -ESHUTDOWN: fenced, somebody else may own the data by now (DESIGN R4): answer nothing.
  int64_t result = 0;
  std::array<uint8_t, 16> cdb;  // kCdb
  // How the device put it, where result < 0 and it answers in SCSI's words (sg), or in such as
  // there is a standard translation for (nvme). The submitter sets status to 0 before.
  struct Answer {
    uint8_t status = 0;      // SAM-5 §5.3; 0: the device said nothing, result is all there is
    uint8_t sense_size = 0;  // bytes
    std::array<uint8_t, 96> sense;  // as it came; SPC-5 §4.4
  } answer;
  void (*done)(Io& io) = nullptr;
  void* context = nullptr;  // the submitter's
  // Backend's own, valid between submit and done; the submitter need not initialise it.
  AioOp aio;
  struct Private {
    Backend* backend = nullptr;
    Aio* aio = nullptr;  // the reactor's, to go on with from a completion
    iovec iov = {};
    uint64_t a = 0;
    uint64_t b = 0;
    uint64_t seen = 0;  // what had been lost when it began (descriptor.h)
    void* p = nullptr;
  } priv;
};

// What SCSI tells hosts about the medium. Immutable while open, but for size_bytes (resize).
struct Info {
  uint32_t memory_alignment = 1;     // bytes; above 1 iov bases are to be multiples, and lengths of
                                     // the block size. Others are bounced by the backend itself.
  uint32_t discard_granularity = 0;  // bytes; 0: kDiscard answers -EOPNOTSUPP
  uint64_t discard_alignment = 0;    // bytes
  bool discard_zeroes = false;       // discarded ranges read zeros (LBPRZ)
  bool thin = false;                 // unwritten ranges hold no space (LBPME)
  bool read_only = false;
  uint32_t atomic_write_bytes = 0;  // what kIoAtomic writes, a power of two, at least a block; 0:
                                    // nobody vouches for more than a logical block
  bool rotational = false;
  bool lends_constants = false;  // what borrow() lends never changes, so a digest over it holds
  bool takes_cdbs = false;       // kCdb
};

struct Extent {
  uint64_t length = 0;  // bytes from the asked offset with the same state, > 0
  bool allocated = true;
};

class Backend {
 public:
  virtual ~Backend() = default;  // no Io in flight; close(), and what was lent is gone

  // Lets go of locks and descriptors, so that the next owner can have them (DESIGN R2), without a
  // flush. No Io is in flight and none follows. What borrow() lent stays where it is until the
  // destructor. Never blocks: what needs the network (rbd) is done by a thread of its own, and the
  // next open() of the same data in this process waits for it.
  // `closed` is called exactly once, as soon as nothing is held any more: inside the call, or later
  // by any thread, perhaps after the destructor. Who closes again is told again. The destructor of
  // one that wasn't closed does the same and tells nobody.
  virtual void close(std::function<void()> closed) { closed(); }

  virtual const Info& info() const = 0;
  virtual uint64_t size_bytes() const = 0;  // atomic

  // true: complete now, io.result is set and done is NOT called. false: done(io) will be called
  // exactly once, later, on this reactor's thread. Requests beyond size_bytes() answer -EINVAL.
  virtual bool submit(Io& io, Aio& aio) = 0;

  // Stable memory that holds the range right now, for backends that have it: READ then sends from
  // there. Valid while the Backend lives; contents may change under a concurrent write. nullptr:
  // submit a kRead instead.
  virtual const uint8_t* borrow(uint64_t /*offset*/, uint64_t /*length*/) const { return nullptr; }

  // Write cache as configured (DESIGN R12): on means kWrite may complete before it is durable.
  virtual bool write_cache() const = 0;
  // How kWrite completes from now on; any thread, never blocks, flushes nothing. What completed, or
  // was submitted, while it was on is durable after a kFlush that follows it (unit/write_cache.h).
  // Error when the backend can't (for example a drive whose own cache is off).
  virtual Result<void> set_write_cache(bool on) = 0;

  // State of allocation at offset, looking at most `limit` bytes ahead. May block briefly.
  virtual Result<Extent> allocation(uint64_t offset, uint64_t limit) const = 0;
  // Bytes that can still be allocated to this LUN; UINT64_MAX when unknown or unlimited.
  virtual uint64_t free_bytes() const { return UINT64_MAX; }

  // Grows (a file: to new_size; a device: takes over its present size, which must equal new_size,
  // or 0 for "whatever it is now"). Shrinking is an error: data would be lost.
  virtual Result<void> resize(uint64_t new_size) = 0;

  // Whether the medium is there. Called about once a second off the I/O path: a vanished file or
  // device answers an error text, and the LUN becomes NOT READY (02/3A/00 is for removable media;
  // the unit answers 02/04/00) until it returns ok again. A size that grew from outside is known
  // when it returns.
  virtual Result<void> check() = 0;

  // Why the name that open() received leads to another object, or to none, while this object is in
  // use; empty: it leads here, or the backend has no name. Commands still succeed, but the next
  // open() finds other data or none. Called after check(), by the same thread.
  virtual std::string misplaced() const { return {}; }
};

// Where a Ceph cluster is, and who we are to it. A key is never part of a message.
struct CephAccess {
  std::string config_file;   // empty: none if `monitors` are given, else /etc/ceph/ceph.conf
  std::string monitors;      // as mon_host: addresses separated by commas; empty: of config_file
  std::string user;          // `sluice` of client.sluice; empty: admin
  std::string keyring_file;  // empty: where config_file says
  std::string key;           // the secret itself, base64; in place of a keyring
  bool operator==(const CephAccess&) const = default;
};

// How a backend is named in a configuration. backend/spec.h reads the text form of it,
// `file:/path,size=1GiB,io=buffered`, and documents the keys.
struct Spec {
  std::string kind;           // null | memory | file | block | sg | nvme | rbd
  std::string path;           // file, device; rbd: pool/image or pool/namespace/image
  uint64_t size = 0;          // bytes; multiple of block_size. 0: the file's or device's own
  uint32_t block_size = 512;  // logical: 512 or 4096
  bool direct = false;        // file: io=direct (O_DIRECT); block is always direct
  bool write_cache = false;
  bool read_only = false;
  bool create = true;  // file: create (sparse) when missing, needs size
  // faulty wrapper, tests only: backend/faulty.h documents the keys. Empty: none.
  std::string fault;
  CephAccess ceph;  // rbd
  // rbd: once fenced, check() makes it come back, as a new client. Not in a cluster: whose the
  // image is by then, the control plane knows alone (DESIGN R4).
  bool comes_back = true;
};

// Opens and locks (DESIGN R2: flock on the very description that does the I/O, O_EXCL for block
// devices, the exclusive lock of an image). The error names the path, the cause and the mend.
Result<std::unique_ptr<Backend>> open(const Spec& spec);

// Who opens a kind that a room of its own knows (rbd::install(), passthrough::install()), in
// programs that have it. `kind`: rbd, sg or nvme.
using Opener = Result<std::unique_ptr<Backend>> (*)(const Spec& spec);
void set_opener(std::string_view kind, Opener opener);

}  // namespace sluice::backend
