#include "rbd/pool_facts.h"

#include <rbd/librbd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <string_view>

#include "backend/failure.h"
#include "base/limits.h"
#include "rbd/ceph_error.h"
#include "rbd/ceph_executor.h"

namespace sluice::rbd {
namespace {

using backend::fail;
using nlohmann::json;

// The monitors' own account of all pools, `ceph df detail`. Discarded: they don't give it.
json account(RadosClient& client) {
  const char* command = R"({"prefix": "df", "detail": "detail", "format": "json"})";
  char* text = nullptr;
  size_t size = 0;
  const int r =
      rados_mon_command(client.handle(), &command, 1, "", 0, &text, &size, nullptr, nullptr);
  json answer = r == 0 ? json::parse(text, text + size, nullptr, false) : json();
  rados_buffer_free(text);
  return answer;
}

uint64_t number(const json& object, const char* name) {
  const auto at = object.find(name);
  return at != object.end() && at->is_number() ? at->get<uint64_t>() : 0;
}

void add_use(const json& answer, const std::string& pool, PoolFacts& facts) {
  const auto pools = answer.find("pools");
  if (pools == answer.end() || !pools->is_array()) return;
  for (const json& one : *pools) {
    if (!one.is_object() || !one.contains("name") || one["name"] != json(pool)) continue;
    const auto stats = one.find("stats");
    if (stats == one.end() || !stats->is_object()) return;
    const uint64_t quota = number(*stats, "quota_bytes");
    facts.used_bytes = number(*stats, "stored");
    facts.capacity_bytes = facts.used_bytes + number(*stats, "max_avail");
    if (quota != 0) facts.capacity_bytes = std::min(facts.capacity_bytes, quota);
  }
}

}  // namespace

Result<PoolFacts> read_pool_facts(RadosClient& client, const std::string& pool,
                                  const std::string& space, const std::string& data_pool) {
  auto opened = client.pool(pool, space);
  if (!opened) return Error{opened.error()};
  const rados_ioctx_t context = (*opened)->context();
  if (!space.empty()) {
    bool exists = false;
    const int r = rbd_namespace_exists(context, space.c_str(), &exists);
    if (r < 0) return fail(pool, "can't tell its namespaces: " + ceph_error(r), "");
    if (!exists) {
      return fail((*opened)->name(), "there is no such namespace",
                  "rbd namespace create " + (*opened)->name());
    }
  }
  if (!data_pool.empty()) {
    if (auto data = client.pool(data_pool, ""); !data) return Error{data.error()};
  }
  size_t none = 0;
  const int r = rbd_list2(context, nullptr, &none);
  if (r == -EACCES || r == -EPERM) {
    return fail(pool, "can't be read: not allowed",
                "the user needs `profile rbd` for the pool's OSDs");
  }
  if (r < 0 && r != -ERANGE) {
    return fail(pool, "can't be read: " + ceph_error(r), "look at `ceph -s`");
  }
  PoolFacts facts;
  facts.cluster = client.cluster_id();
  add_use(account(client), data_pool.empty() ? pool : data_pool, facts);
  return facts;
}

Result<PoolFacts> probe(const backend::CephAccess& access, const std::string& pool,
                        const std::string& space, const std::string& data_pool) {
  return wait_for_ceph<PoolFacts>(group_of(access, pool), pool, 2 * limits::kCephConnect,
                                  [=]() -> Result<PoolFacts> {
                                    auto client = RadosClient::connect(access);
                                    if (!client) return Error{client.error()};
                                    return read_pool_facts(**client, pool, space, data_pool);
                                  });
}

}  // namespace sluice::rbd
