#include "control_rbd/pool_client.h"

#include <utility>

#include "base/boot_clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "control_rbd/rbd_marker.h"
#include "rbd/ceph_executor.h"

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

PoolClient::PoolClient(wire::DesiredPool desired, const PoolServices& services,
                       std::shared_ptr<CallbackGate> callbacks, std::shared_ptr<OpenImages> images)
    : desired_(std::move(desired)),
      name_(name_of(desired_.rbd())),
      access_(access_of(desired_.rbd())),
      self_(this_process(services.incarnation, {})),
      commits_(services.commits),
      callbacks_(std::move(callbacks)),
      images_(std::move(images)) {
  expect(desired_);
}

// The client may be the last of its kind: its end takes a while.
PoolClient::~PoolClient() {
  if (!status_.client) return;
  const std::string client = status_.client->addresses();
  callbacks().run([&] { commits_.remove(commit_); });
  rbd::ceph_executor().post({client}, [client = std::move(status_.client),
                                       pool = std::move(pool_)]() mutable { pool.reset(); });
}

void PoolClient::begin(std::function<void()> changed) {
  changed_ = std::move(changed);
  connect();
}

void PoolClient::expect(const wire::DesiredPool& desired) {
  const std::lock_guard lock(mutex_);
  expected_.uid = desired.uid();
  expected_.identity.reset();
  if (desired.has_identity()) expected_.identity = desired.identity();
}

ExpectedPool PoolClient::expected() const {
  const std::lock_guard lock(mutex_);
  return expected_;
}

Result<PoolClient::Storage> PoolClient::identify(rbd::RadosClient& client) const {
  auto pool = client.pool(desired().pool(), desired().rados_namespace());
  if (!pool) return Error{pool.error()};
  auto apart = client.again(**pool);
  if (!apart) return Error{apart.error()};
  Result<Identified> identified = identify_rbd_pool(std::move(apart).value(), expected());
  if (!identified) return Error{identified.error()};
  return Storage{std::move(pool).value(), std::move(identified).value()};
}

void PoolClient::connect() {
  {
    const std::lock_guard lock(mutex_);
    if (status_.connecting || status_.client) return;
    status_.connecting = true;
    tried_ = boot_clock_now();
  }
  const bool posted = rbd::ceph_executor().try_post(
      {group()}, [self = shared_from_this()] { self->connect_now(); });
  if (posted) return;
  const std::lock_guard lock(mutex_);
  status_.connecting = false;
}

void PoolClient::connect_now() {
  auto client = rbd::RadosClient::shared(access_);
  auto pool = client ? (*client)->pool(desired().pool(), desired().rados_namespace())
                     : Result<std::shared_ptr<rbd::Pool>>(Error{client.error()});
  {
    const std::lock_guard lock(mutex_);
    status_.connecting = false;
    status_.recorded = false;
    if (!pool) {
      if (status_.problem.empty()) problem_since_ = boot_clock_now();
      status_.problem = pool.error();
    } else {
      status_.problem.clear();
      status_.client = *client;
      pool_ = *pool;
    }
  }
  if (!pool) return changed_();
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
    rbd::ceph_executor().post({address}, [weak, address] {
      if (const auto self = weak.lock()) self->client_gone(address);
    });
  });
  changed_();
}

void PoolClient::on_client_state(const std::string& client, ClientCommits::State state,
                                 const std::string& why) {
  std::shared_ptr<rbd::RadosClient> fenced;
  {
    const std::lock_guard lock(mutex_);
    if (!status_.client || status_.client->addresses() != client) return;
    if (state == ClientCommits::State::kFenced) fenced = status_.client;
    if (state == ClientCommits::State::kRecorded) {
      status_.recorded = true;
      status_.problem.clear();
    } else if (!why.empty()) {
      if (status_.problem.empty()) problem_since_ = boot_clock_now();
      status_.problem = "its client " + client + " is not recorded by the control plane: " + why;
    }
  }
  if (fenced) {
    log::error("a client of Ceph is shut out", {{"pool", name_}, {"client", client}});
    rbd::ceph_executor().post({client}, [fenced = std::move(fenced)] { fenced->note_fenced(); });
    return;
  }
  images_->wake_holders();
  changed_();
}

// R4: the images that it has open never answer again. The next client is a new one, for later
// epochs.
void PoolClient::client_gone(const std::string& client) {
  std::shared_ptr<rbd::RadosClient> lost_client;
  std::shared_ptr<rbd::Pool> pool;
  uint64_t commit = 0;
  {
    const std::lock_guard lock(mutex_);
    if (!status_.client || status_.client->addresses() != client) return;
    lost_client = std::move(status_.client);
    pool = std::move(pool_);
    commit = commit_;
    status_.client.reset();
    pool_.reset();
    status_.recorded = false;
  }
  images_->fence(*lost_client);
  callbacks().run([&] { commits_.remove(commit); });
  connect();
}

std::shared_ptr<rbd::Pool> PoolClient::recorded(std::string* problem, Nanos* since) const {
  const std::lock_guard lock(mutex_);
  if (pool_ && status_.recorded && !status_.client->fenced()) return pool_;
  *problem = status_.problem;
  *since = problem_since_;
  return nullptr;
}

Result<std::shared_ptr<rbd::Pool>> PoolClient::connected() const {
  {
    const std::lock_guard lock(mutex_);
    if (pool_ && !status_.client->fenced()) return pool_;
  }
  auto client = rbd::RadosClient::shared(access_);
  if (!client) return Error{client.error()};
  return (*client)->pool(desired().pool(), desired().rados_namespace());
}

void PoolClient::tick() {
  bool again = false, problem = false;
  std::shared_ptr<rbd::RadosClient> client;
  std::shared_ptr<rbd::Pool> pool;
  {
    const std::lock_guard lock(mutex_);
    problem = !status_.problem.empty();
    again =
        !status_.client && !status_.connecting && boot_clock_now() - tried_ >= limits::kPoolAgain;
    client = status_.client;
    pool = pool_;
  }
  if (again) connect();
  // A gateway that serves nothing sends no I/O. Without this it would not learn that its client is
  // blocklisted, and would get no volume again.
  if (client && pool) client->prove(*pool);
  if (problem) images_->wake_holders();  // they measure how long the problem lasts
}

bool PoolClient::is_connecting() const {
  const std::lock_guard lock(mutex_);
  return status_.connecting;
}

PoolClient::Status PoolClient::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

}  // namespace sluice::control
