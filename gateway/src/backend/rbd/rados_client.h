// A client of a Ceph cluster: an address with a nonce that is valid for the life of this object.
// Blocklisting the address permanently ends every image that it has open. A blocklisted gateway
// must connect as a new client (DESIGN R2, R4). Nothing here removes a blocklist entry.
//
// Threads: any except a reactor's. Calls wait for the cluster, at most limits::kCephConnect where a
// limit is possible. fenced() and prove() do not wait.
#pragma once

#include <rados/librados.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/result.h"

namespace sluice::rbd {

// A pool or a namespace in it, as a client uses it. Keeps the client alive.
class Pool;

class RadosClient : public std::enable_shared_from_this<RadosClient> {
 public:
  // The error names the user or the monitors, with the remedy: no answer, no key, access refused.
  static Result<std::shared_ptr<RadosClient>> connect(const backend::CephAccess& access);
  // Returns the client that all callers with the same access share until it is fenced. One client
  // needs one blocklist entry, and costs a dozen threads.
  static Result<std::shared_ptr<RadosClient>> shared(const backend::CephAccess& access);
  ~RadosClient();
  RadosClient(const RadosClient&) = delete;
  RadosClient& operator=(const RadosClient&) = delete;

  // In the form of a blocklist entry: `192.0.2.1:0/3452894869`.
  const std::string& addresses() const { return addresses_; }
  const std::string& cluster_id() const { return cluster_id_; }  // fsid
  // Whether the addresses belong to a client of this process that is not fenced.
  static bool lives_here(const std::string& addresses);

  rados_t handle() const { return cluster_; }
  Result<std::shared_ptr<Pool>> pool(const std::string& name, const std::string& space);
  // Opens the same pool again, even if its name now belongs to another pool.
  Result<std::shared_ptr<Pool>> again(const Pool& pool);

  // Blocklists another client for `seconds`; for years if safety depends on it, because the old
  // owner may be suspended for very long. An existing entry keeps its duration. On return this
  // client has the map with the entry, and no request of the other client is executed after a later
  // request of this one (DESIGN R2).
  Result<void> blocklist(const std::string& addresses, uint32_t seconds = kForGood);
  Result<void> wait_for_latest_map();

  // Blocklisted, as far as answers have shown.
  bool fenced() const { return state_->fenced.load(std::memory_order_acquire); }
  // The thread that detects the fence first calls `on_fenced` once; immediately if it is known.
  void watch_fence(std::function<void()> on_fenced);
  void note_fenced() { state_->note_fenced(); }
  // Sends a small request to a disk of `pool` unless one was sent just now. The answer shows that
  // this client is fenced, or that it was not when it asked.
  void prove(Pool& pool);
  // Counts open images. librados queries each at every tick, so ticks become rarer with many
  // images.
  void opened() { set_tick(state_->images.fetch_add(1) + 1); }
  void closed() { set_tick(state_->images.fetch_sub(1) - 1); }

  // Until when this client provably was not fenced (CLOCK_BOOTTIME, nanoseconds); 0: never proven.
  Nanos proven() const { return state_->proven.load(std::memory_order_acquire); }

  static constexpr uint32_t kForGood = 10 * 365 * 86400;  // seconds

 private:
  struct State {
    std::atomic<bool> fenced = false;
    std::atomic<Nanos> proven = 0;
    std::atomic<Nanos> asked = 0;
    std::atomic<bool> asking = false;
    std::atomic<unsigned> images = 0;
    std::atomic<Nanos> tick = limits::kCephTick;
    std::mutex mutex;
    std::vector<std::function<void()>> on_fenced;
    void note_fenced();
  };
  struct Question;

  RadosClient(rados_t cluster, std::string addresses, std::string cluster_id)
      : cluster_(cluster), addresses_(std::move(addresses)), cluster_id_(std::move(cluster_id)) {}
  void set_tick(unsigned images);
  static std::mutex living_mutex;
  static std::map<std::string, std::shared_ptr<State>>& living();
  static void answered(rados_completion_t completion, void* question);

  const rados_t cluster_;
  const std::string addresses_;
  const std::string cluster_id_;
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

class Pool {
 public:
  Pool(std::shared_ptr<RadosClient> client, rados_ioctx_t context, std::string name)
      : client_(std::move(client)),
        context_(context, [](void* open) { rados_ioctx_destroy(open); }),
        name_(std::move(name)) {}
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  RadosClient& client() const { return *client_; }
  rados_ioctx_t context() const { return context_.get(); }
  // For requests that may complete after the destruction of the pool: librados then still reads the
  // context.
  std::shared_ptr<void> shared_context() const { return context_; }
  const std::string& name() const { return name_; }  // `pool` or `pool/namespace`
  // Number of the pool in its cluster. A pool that is created again has another number.
  int64_t id() const { return rados_ioctx_get_id(context()); }

 private:
  const std::shared_ptr<RadosClient> client_;
  const std::shared_ptr<void> context_;
  const std::string name_;
};

// The executor's group for tasks that wait for `pool` in the cluster of `access`.
std::string group_of(const backend::CephAccess& access, const std::string& pool);

}  // namespace sluice::rbd
