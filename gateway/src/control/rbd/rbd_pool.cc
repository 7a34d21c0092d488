#include "control_rbd/rbd_pool.h"

#include <utility>

#include "base/log.h"
#include "control_rbd/rbd_jobs.h"
#include "control_rbd/rbd_storage.h"

namespace sluice::control {
namespace {

std::string name_of(const wire::DesiredRbdPool& pool) {
  return pool.rados_namespace().empty() ? pool.pool() : pool.pool() + '/' + pool.rados_namespace();
}

// Without a protocol in the address librados tries both. It waits for the wrong one, and an error
// from the other one, such as a refused key, is reported as a timeout.
std::string with_protocol(const std::string& monitor) {
  const size_t colon = monitor.rfind(':');
  const std::string host = monitor.substr(0, colon);
  const bool named =
      monitor.find("v1:") != std::string::npos || monitor.find("v2:") != std::string::npos;
  const bool literal =
      host.starts_with('[') || host.find_first_not_of("0123456789.") == std::string::npos;
  if (colon == std::string::npos || named || !literal) return monitor;
  return (monitor.substr(colon + 1) == "6789" ? "v1:" : "v2:") + monitor;
}

backend::CephAccess access_of(const wire::DesiredRbdPool& pool) {
  backend::CephAccess access;
  for (const std::string& monitor : pool.monitors()) {
    access.monitors += (access.monitors.empty() ? "" : ",") + with_protocol(monitor);
  }
  access.user = pool.user();
  access.key = pool.key();
  return access;
}

}  // namespace

RbdPool::RbdPool(wire::DesiredPool desired, const PoolServices& services,
                 std::shared_ptr<RbdShared> shared)
    : desired_(std::move(desired)),
      name_(name_of(desired_.rbd())),
      access_(access_of(desired_.rbd())),
      self_(this_process(services.incarnation, {})),
      commits_(services.commits),
      shared_(std::move(shared)) {
  expect(desired_);
}

// The client may be the last of its kind: its end takes a while.
RbdPool::~RbdPool() {
  if (!client_) return;
  const std::string client = client_->addresses();
  callbacks().run([&] { commits_.remove(commit_); });
  rbd::Workers::instance().post_always(
      client, [client = std::move(client_), pool = std::move(pool_)]() mutable { pool.reset(); });
}

void RbdPool::begin() { connect(); }

// --- its client

void RbdPool::connect() {
  {
    const std::lock_guard lock(mutex_);
    if (connecting_ || client_) return;
    connecting_ = true;
    tried_ = boot_time();
  }
  const bool posted =
      rbd::Workers::instance().post(group(), [self = shared_from_this()] { self->connect_now(); });
  if (posted) return;
  const std::lock_guard lock(mutex_);
  connecting_ = false;
}

void RbdPool::connect_now() {
  auto client = rbd::RadosClient::shared(access_);
  auto pool = client ? (*client)->pool(desired().pool(), desired().rados_namespace())
                     : Result<std::shared_ptr<rbd::Pool>>(Error{client.error()});
  {
    const std::lock_guard lock(mutex_);
    connecting_ = false;
    recorded_ = false;
    if (!pool) {
      if (problem_.empty()) problem_since_ = boot_time();
      problem_ = pool.error();
    } else {
      problem_.clear();
      client_ = *client;
      pool_ = *pool;
    }
  }
  if (!pool) return look();
  const std::string address = (*client)->addresses();
  const auto weak = weak_from_this();
  callbacks().run([&] {
    const uint64_t added =
        commits_.add(desired_.uid(), address,
                     [weak, address](ClientCommits::State state, const std::string& why) {
                       if (const auto self = weak.lock())
                         self->on_client_state(address, state, why);
                     });
    const std::lock_guard lock(mutex_);
    commit_ = added;
  });
  // The callback may run on a librados thread, which can't end its own client.
  (*client)->watch_fence([weak, address] {
    rbd::Workers::instance().post_always(address, [weak, address] {
      if (const auto self = weak.lock()) self->client_gone(address);
    });
  });
  look();
}

void RbdPool::on_client_state(const std::string& client, ClientCommits::State state,
                              const std::string& why) {
  std::shared_ptr<rbd::RadosClient> fenced;
  {
    const std::lock_guard lock(mutex_);
    if (!client_ || client_->addresses() != client) return;
    if (state == ClientCommits::State::kFenced) fenced = client_;
    if (state == ClientCommits::State::kRecorded) {
      recorded_ = true;
      problem_.clear();
    } else if (!why.empty()) {
      if (problem_.empty()) problem_since_ = boot_time();
      problem_ = "its client " + client + " is not recorded by the control plane: " + why;
    }
  }
  if (fenced) {
    log::error("a client of Ceph is shut out", {{"pool", name_}, {"client", client}});
    rbd::Workers::instance().post_always(client,
                                         [fenced = std::move(fenced)] { fenced->note_fenced(); });
    return;
  }
  wake_storages();
  look();
}

// R4: what was open by it answers nothing more, and comes back by no means of its own. The next
// client is a new one, for later epochs.
void RbdPool::client_gone(const std::string& client) {
  std::shared_ptr<rbd::RadosClient> lost_client;
  std::shared_ptr<rbd::Pool> pool;
  uint64_t commit = 0;
  {
    const std::lock_guard lock(mutex_);
    if (!client_ || client_->addresses() != client) return;
    lost_client = std::move(client_);
    pool = std::move(pool_);
    commit = commit_;
    client_.reset();
    pool_.reset();
    recorded_ = false;
  }
  for (const auto& storage : storages()) storage->fence(*lost_client);
  callbacks().run([&] { commits_.remove(commit); });
  connect();
}

std::shared_ptr<rbd::Pool> RbdPool::recorded(std::string* problem, Nanos* since) const {
  const std::lock_guard lock(mutex_);
  if (pool_ && recorded_ && !client_->fenced()) return pool_;
  *problem = problem_;
  *since = problem_since_;
  return nullptr;
}

Result<std::shared_ptr<rbd::Pool>> RbdPool::connected() {
  {
    const std::lock_guard lock(mutex_);
    if (pool_ && !client_->fenced()) return pool_;
  }
  auto client = rbd::RadosClient::shared(access_);
  if (!client) return Error{client.error()};
  return (*client)->pool(desired().pool(), desired().rados_namespace());
}

void RbdPool::tick() {
  bool again = false, problem = false;
  std::shared_ptr<rbd::RadosClient> client;
  std::shared_ptr<rbd::Pool> pool;
  {
    const std::lock_guard lock(mutex_);
    problem = !problem_.empty();
    again = !client_ && !connecting_ && boot_time() - tried_ >= limits::kPoolAgain;
    client = client_;
    pool = pool_;
  }
  if (again) connect();
  // Who serves nothing asks no disk: it would never learn that it is shut out, nor be given
  // anything again.
  if (client && pool) client->prove(*pool);
  if (problem) wake_storages();  // to look how long it has been so
}

// --- storages

Result<std::shared_ptr<VolumeStorage>> RbdPool::storage_of(const wire::DesiredVolume& volume,
                                                           std::function<void()> wake) {
  if (volume.location().empty() || volume.location().find_first_of("/@") != std::string::npos) {
    return Error{"\"" + volume.location() + "\" is no name of an image"};
  }
  auto storage = std::make_shared<RbdStorage>(shared_from_this(), volume, std::move(wake));
  const std::lock_guard lock(mutex_);
  std::erase_if(storages_, [](const auto& entry) { return entry.second.expired(); });
  storages_.emplace(volume.location(), storage);
  return std::shared_ptr<VolumeStorage>(std::move(storage));
}

std::vector<std::shared_ptr<RbdStorage>> RbdPool::storages(const std::string* location) const {
  std::vector<std::shared_ptr<RbdStorage>> all;
  const std::lock_guard lock(mutex_);
  const auto range =
      location ? storages_.equal_range(*location) : std::pair(storages_.begin(), storages_.end());
  for (auto at = range.first; at != range.second; ++at) {
    if (auto storage = at->second.lock()) all.push_back(std::move(storage));
  }
  return all;
}

void RbdPool::wake_storages() {
  for (const auto& storage : storages()) storage->wake();
}

std::shared_ptr<rbd::ServedImage> RbdPool::served(const std::string& location) {
  for (const auto& storage : storages(&location)) {
    if (auto image = storage->image()) return image;
  }
  return nullptr;
}

// --- jobs

RbdPool::Use::Use(std::shared_ptr<RbdPool> pool, std::string location)
    : pool_(std::move(pool)),
      location_(std::move(location)),
      stopped_(std::make_shared<std::atomic<bool>>(false)) {
  {
    const std::lock_guard lock(pool_->mutex_);
    pool_->uses_.emplace(location_, stopped_);
  }
  // A storage that starts to release the image later stops this use, too.
  for (const auto& storage : pool_->storages(&location_)) {
    if (storage->leaving()) *stopped_ = true;
  }
}

RbdPool::Use::~Use() {
  {
    const std::lock_guard lock(pool_->mutex_);
    std::erase_if(pool_->uses_, [&](const auto& entry) { return entry.second == stopped_; });
  }
  for (const auto& storage : pool_->storages(&location_)) storage->wake();
}

void RbdPool::stop_uses(const std::string& location) {
  const std::lock_guard lock(mutex_);
  const auto range = uses_.equal_range(location);
  for (auto at = range.first; at != range.second; ++at) *at->second = true;
}

bool RbdPool::is_used(const std::string& location) const {
  const std::lock_guard lock(mutex_);
  return uses_.contains(location);
}

void RbdPool::run_job(const wire::Job& job, const JobServices& services,
                      std::function<void(JobOutcome)> done) {
  rbd::Workers* workers = &shared_->jobs;
  if (job.has_fence_clients()) workers = &shared_->fences;
  if (job.has_flatten() || job.has_roll_back() || job.has_delete_()) workers = &shared_->long_jobs;
  const bool posted = workers->post(group(), [self = shared_from_this(), job, services, done] {
    JobOutcome outcome = run_rbd_job(self, job, [&](uint32_t permille) {
      self->callbacks().run([&] { services.progress(permille); });
    });
    self->callbacks().run([&] { done(std::move(outcome)); });
  });
  if (!posted) done({.problem = "too many jobs wait for Ceph already; try again"});
}

// --- the kind

namespace {

class RbdPools final : public PoolKind {
 public:
  Result<std::shared_ptr<StoragePool>> open(const wire::DesiredPool& pool,
                                            const PoolServices& services) override {
    if (pool.rbd().pool().empty()) return Error{"a pool of Ceph needs the name of its pool"};
    if (pool.rbd().monitors().empty()) return Error{"a pool of Ceph needs addresses of monitors"};
    auto opened = std::make_shared<RbdPool>(pool, services, shared_);
    opened->begin();
    return std::shared_ptr<StoragePool>(std::move(opened));
  }

  bool stop() override {
    shared_->callbacks.close();
    bool quiet = true;
    for (rbd::Workers* workers : {&shared_->jobs, &shared_->long_jobs, &shared_->fences}) {
      quiet = workers->stop(kPatience) && quiet;
    }
    return quiet;
  }

 private:
  static constexpr Nanos kPatience = kSecond;
  const std::shared_ptr<RbdShared> shared_ = std::make_shared<RbdShared>();
};

}  // namespace

std::shared_ptr<PoolKind> rbd_pools() { return std::make_shared<RbdPools>(); }

}  // namespace sluice::control
