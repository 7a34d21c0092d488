// A client of a Ceph cluster, as the cluster knows it: one address with a nonce, which lives and
// dies with this object. Blocklisting that address ends every image opened by it, and for good:
// whoever was blocklisted comes back as a new client (DESIGN R2, R4). Nothing here lifts a
// blocklisting.
//
// Threads: any but a reactor's; calls wait for the cluster, limits::kCephConnect where that can be
// bounded. fenced() and prove() don't wait.
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

// A pool, or a namespace in it, as a client sees it. Keeps the client alive.
class Pool;

class RadosClient : public std::enable_shared_from_this<RadosClient> {
 public:
  // The error names the user or the monitors, and the mend: no answer, no key, refused.
  static Result<std::shared_ptr<RadosClient>> connect(const backend::CephAccess& access);
  // The one that all who ask with the same access share, until it is fenced: one client is one
  // thing to blocklist, and costs a dozen threads.
  static Result<std::shared_ptr<RadosClient>> shared(const backend::CephAccess& access);
  ~RadosClient();
  RadosClient(const RadosClient&) = delete;
  RadosClient& operator=(const RadosClient&) = delete;

  // As a blocklist names it, `192.0.2.1:0/3452894869`.
  const std::string& addresses() const { return addresses_; }
  const std::string& cluster_id() const { return cluster_id_; }  // fsid
  // Whether they are those of a client of this process that isn't fenced.
  static bool lives_here(const std::string& addresses);

  rados_t handle() const { return cluster_; }
  Result<std::shared_ptr<Pool>> pool(const std::string& name, const std::string& space);
  // The very same pool once more, also where its name is another pool's by now.
  Result<std::shared_ptr<Pool>> again(const Pool& pool);

  // Ends another client for `seconds`; years, where safety depends on it: the old owner may be
  // asleep longer than anyone expects. One that is blocklisted already stays so for as long as it
  // was told. When it returns, this client has the map that says so, and no request of the other
  // one is executed after one of ours (DESIGN R2).
  Result<void> blocklist(const std::string& addresses, uint32_t seconds = kForGood);
  Result<void> wait_for_latest_map();

  // Blocklisted, as far as an answer has told.
  bool fenced() const { return state_->fenced.load(std::memory_order_acquire); }
  // Called once, by whatever thread learns it first; at once where it is known already.
  void watch_fence(std::function<void()> told);
  void note_fenced() { state_->note_fenced(); }
  // Asks a disk of `pool` something small, if nothing was asked just now. The answer tells that
  // this client is fenced, or that it wasn't when it asked.
  void prove(Pool& pool);
  // Images that it has open, each of which it asks Ceph about at each of its ticks: those become
  // rarer with many.
  void opened() { set_tick(state_->images.fetch_add(1) + 1); }
  void closed() { set_tick(state_->images.fetch_sub(1) - 1); }

  // Until when it is proven that it wasn't fenced (CLOCK_BOOTTIME); 0: not at all.
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
    std::vector<std::function<void()>> told;
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
  // For requests whose answer may come when the pool is gone: librados reads the context then.
  std::shared_ptr<void> shared_context() const { return context_; }
  const std::string& name() const { return name_; }  // `pool` or `pool/namespace`
  // Number of the pool in its cluster. A pool that is created again has another number.
  int64_t id() const { return rados_ioctx_get_id(context()); }

 private:
  const std::shared_ptr<RadosClient> client_;
  const std::shared_ptr<void> context_;
  const std::string name_;
};

// The workers' group of what waits for `pool` in the cluster that `access` names.
std::string group_of(const backend::CephAccess& access, const std::string& pool);

// What a Ceph error number means, in words.
std::string ceph_error(int negative_errno);

}  // namespace sluice::rbd
