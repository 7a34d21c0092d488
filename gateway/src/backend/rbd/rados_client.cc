#include "rbd/rados_client.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <utility>

#include "backend/failure.h"
#include "base/boot_clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "rbd/ceph_error.h"
#include "rbd/client_settings.h"

namespace sluice::rbd {
namespace {

using backend::CephAccess;
using backend::fail;

constexpr Nanos kProofInterval = 500 * kMillisecond;

std::string user_of(const CephAccess& access) {
  return "client." + (access.user.empty() ? "admin" : access.user);
}

Error explain(int r, const CephAccess& access) {
  switch (-r) {
    case ETIMEDOUT:
      return fail(
          cluster_of(access),
          "no monitor answered within " + std::to_string(limits::kCephConnect / kSecond) + " s",
          "check the monitors' addresses and the network to them");
    case EACCES:
    case EPERM:
      return fail(cluster_of(access), "refused " + user_of(access),
                  "check that this user exists and that its key is right (ceph auth get)");
    case ENOENT:
      return fail(cluster_of(access), "there is no key of " + user_of(access),
                  "name a keyring that has it and that the gateway's user may read");
    default:
      return fail(cluster_of(access), "can't connect as " + user_of(access) + ": " + ceph_error(r),
                  "check monitors, user and key");
  }
}

}  // namespace

// Clients of this process, by address.
std::mutex RadosClient::living_mutex;
std::map<std::string, std::shared_ptr<RadosClient::State>>& RadosClient::living() {
  static auto& all = *new std::map<std::string, std::shared_ptr<State>>;  // outlives statics
  return all;
}

std::string group_of(const CephAccess& access, const std::string& pool) {
  return cluster_of(access) + "/" + pool;
}

Result<std::shared_ptr<RadosClient>> RadosClient::connect(const CephAccess& access) {
  rados_t cluster = nullptr;
  int r = rados_create2(&cluster, "ceph", user_of(access).c_str(), 0);
  if (r < 0) return explain(r, access);
  const Result<void> configured = configure(cluster, access);
  r = configured ? rados_connect(cluster) : -EINVAL;
  if (r < 0) {
    rados_shutdown(cluster);
    return configured ? explain(r, access) : Error{configured.error()};
  }
  char* addresses = nullptr;
  r = rados_getaddrs(cluster, &addresses);
  char id[64] = {};
  if (r < 0 || rados_cluster_fsid(cluster, id, sizeof id) < 0) {
    rados_shutdown(cluster);
    return explain(r < 0 ? r : -EIO, access);
  }
  std::shared_ptr<RadosClient> client(new RadosClient(cluster, addresses, id));
  rados_buffer_free(addresses);
  {
    const std::lock_guard lock(living_mutex);
    living()[client->addresses_] = client->state_;
  }
  log::info("connected to Ceph", {{"cluster", client->cluster_id_},
                                  {"user", user_of(access)},
                                  {"client", client->addresses_}});
  return client;
}

Result<std::shared_ptr<RadosClient>> RadosClient::shared(const CephAccess& access) {
  using Key = std::array<std::string, 5>;
  struct Known {
    // Held while connecting: two who come at once with the same access get one client. Others don't
    // wait for a cluster that can't be reached.
    std::mutex mutex;
    std::weak_ptr<RadosClient> client;
  };
  static std::mutex mutex;
  static std::map<Key, std::shared_ptr<Known>> all;
  std::shared_ptr<Known> known;
  {
    const std::lock_guard lock(mutex);
    std::erase_if(all, [](const auto& entry) {
      if (entry.second.use_count() != 1) return false;  // a connect is in progress
      const std::lock_guard guard(entry.second->mutex);
      return entry.second->client.expired();
    });
    std::shared_ptr<Known>& entry =
        all[{access.config_file, access.monitors, access.user, access.keyring_file, access.key}];
    if (!entry) entry = std::make_shared<Known>();
    known = entry;
  }
  const std::lock_guard lock(known->mutex);
  if (auto client = known->client.lock(); client && !client->fenced()) return client;
  auto client = connect(access);
  if (client) known->client = *client;
  return client;
}

bool RadosClient::lives_here(const std::string& addresses) {
  const std::lock_guard lock(living_mutex);
  const auto known = living().find(addresses);
  return known != living().end() && !known->second->fenced.load(std::memory_order_acquire);
}

RadosClient::~RadosClient() {
  {
    const std::lock_guard lock(living_mutex);
    living().erase(addresses_);
  }
  rados_shutdown(cluster_);
}

Result<std::shared_ptr<Pool>> RadosClient::pool(const std::string& name, const std::string& space) {
  const std::string full = space.empty() ? name : name + "/" + space;
  rados_ioctx_t context = nullptr;
  const int r = rados_ioctx_create(cluster_, name.c_str(), &context);
  if (r == -ENOENT) {
    return fail(full, "there is no pool " + name + " in this cluster",
                "name one that `ceph osd pool ls` shows, or create it");
  }
  if (r < 0) return fail(full, "can't use the pool: " + ceph_error(r), "check the user's rights");
  if (!space.empty()) rados_ioctx_set_namespace(context, space.c_str());
  // A full pool refuses writes immediately, so that hosts get an error instead of a hang.
  rados_set_pool_full_try(context);
  return std::make_shared<Pool>(shared_from_this(), context, full);
}

Result<std::shared_ptr<Pool>> RadosClient::again(const Pool& pool) {
  rados_ioctx_t context = nullptr;
  const int r = rados_ioctx_create2(cluster_, pool.id(), &context);
  if (r < 0) return fail(pool.name(), "can't use the pool: " + ceph_error(r), "check the pool");
  const size_t slash = pool.name().find('/');
  if (slash != std::string::npos) {
    rados_ioctx_set_namespace(context, pool.name().substr(slash + 1).c_str());
  }
  rados_set_pool_full_try(context);
  return std::make_shared<Pool>(shared_from_this(), context, pool.name());
}

Result<void> RadosClient::blocklist(const std::string& addresses, uint32_t seconds) {
  std::string copy = addresses;
  const int r = rados_blocklist_add(cluster_, copy.data(), seconds);
  if (r < 0) {
    return fail("client " + addresses, "can't be blocklisted: " + ceph_error(r),
                "the user needs `profile rbd` for monitors");
  }
  log::warning("client of Ceph blocklisted", {{"client", addresses}, {"by", addresses_}});
  return wait_for_latest_map();
}

Result<void> RadosClient::wait_for_latest_map() {
  const int r = rados_wait_for_latest_osdmap(cluster_);
  if (r < 0)
    return fail("Ceph", "can't get the latest map: " + ceph_error(r), "check the monitors");
  return {};
}

void RadosClient::State::note_fenced() {
  std::vector<std::function<void()>> all;
  {
    const std::lock_guard lock(mutex);
    if (fenced.exchange(true, std::memory_order_acq_rel)) return;
    all.swap(on_fenced);
  }
  for (const auto& one : all) one();
}

void RadosClient::watch_fence(std::function<void()> on_fenced) {
  {
    const std::lock_guard lock(state_->mutex);
    if (!fenced()) return state_->on_fenced.push_back(std::move(on_fenced));
  }
  on_fenced();
}

// At each tick librados checks every watch, one per image: with 1,000 images and two ticks a second
// that took a third of a processor.
void RadosClient::set_tick(unsigned images) {
  Nanos tick = limits::kCephTick;
  while (tick < limits::kCephTickOfMany && images > limits::kCephAsks * tick / kSecond) tick *= 2;
  if (state_->tick.exchange(tick) == tick) return;
  rados_conf_set(cluster_, "objecter_tick_interval", seconds_of(tick).c_str());
}

struct RadosClient::Question {
  std::shared_ptr<State> state;
  Nanos asked;
  std::shared_ptr<void> context;
  uint64_t size = 0;
  time_t time = 0;
};

void RadosClient::prove(Pool& pool) {
  const Nanos now = boot_clock_now();
  if (now - state_->asked.load(std::memory_order_relaxed) < kProofInterval) return;
  if (state_->asking.exchange(true, std::memory_order_acq_rel)) return;
  state_->asked.store(now, std::memory_order_relaxed);
  auto question = std::make_unique<Question>(Question{state_, now, pool.shared_context()});
  rados_completion_t completion = nullptr;
  if (rados_aio_create_completion2(question.get(), &RadosClient::answered, &completion) == 0) {
    Question* asked = question.release();
    const int r =
        rados_aio_stat(pool.context(), "rbd_directory", completion, &asked->size, &asked->time);
    rados_aio_release(completion);
    if (r == 0) return;
    question.reset(asked);
  }
  state_->asking.store(false, std::memory_order_release);
}

// By a thread of librados. That there is no such object is an answer, too.
void RadosClient::answered(rados_completion_t completion, void* argument) {
  const std::unique_ptr<Question> question(static_cast<Question*>(argument));
  State& state = *question->state;
  const int r = rados_aio_get_return_value(completion);
  state.asking.store(false, std::memory_order_release);
  if (r == 0 || r == -ENOENT) {
    state.proven.store(question->asked, std::memory_order_release);
  } else if (r == -ESHUTDOWN) {
    state.note_fenced();
  }
}

}  // namespace sluice::rbd
