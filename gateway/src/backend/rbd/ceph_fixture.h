// A real Ceph cluster for tests, created by tests/lib/mini-ceph; SLUICE_CEPH names its folder. Each
// test has its own namespace for images, which is removed with it.
#pragma once

#include <gtest/gtest.h>
#include <rbd/librbd.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "backend/backend.h"
#include "rbd/image_name.h"
#include "rbd/images.h"

namespace sluice::rbd {

inline std::string ceph_folder() {
  const char* folder = std::getenv("SLUICE_CEPH");
  return folder == nullptr ? "" : folder;
}

// A gateway's access: it may add blocklist entries, not remove them.
inline backend::CephAccess gateway_access() {
  return {.config_file = ceph_folder() + "/ceph.conf",
          .monitors = "",
          .user = "gateway",
          .keyring_file = ceph_folder() + "/gateway.keyring",
          .key = ""};
}

// Runs a command as administrator. 0: success.
inline int admin(const std::string& command) {
  return std::system(
      ("CEPH_CONF=" + ceph_folder() + "/ceph.conf timeout 60 " + command + " >/dev/null 2>&1")
          .c_str());
}

// A client that is not shared with backends.
inline std::shared_ptr<RadosClient> new_client() {
  auto client = RadosClient::connect(gateway_access());
  EXPECT_TRUE(client.ok()) << client.error();
  return client ? *client : nullptr;
}

inline constexpr uint64_t kImageSize = uint64_t{8} << 20;  // bytes

// A namespace with an image `disk` of kImageSize.
class CephNamespace {
 public:
  CephNamespace() {
    static int count = 0;
    space_ = "test-" + std::to_string(getpid()) + "-" + std::to_string(++count);
    if (ceph_folder().empty()) {
      ADD_FAILURE() << "SLUICE_CEPH names no cluster; `make test-ceph` makes one";
      return;
    }
    client_ = new_client();
    auto pool = client_ ? client_->pool("rbd", space_) : Error{"not connected"};
    if (!pool) return;
    pool_ = *pool;
    EXPECT_EQ(rbd_namespace_create(pool_->context(), space_.c_str()), 0);
    const Result<void> created = images().create("disk", {.size = kImageSize, .data_pool = ""});
    EXPECT_TRUE(created.ok()) << created.error();
  }
  ~CephNamespace() {
    pool_.reset();
    client_.reset();
    // Open images still have watches; the cluster is deleted with them.
  }

  const std::string& space() const { return space_; }
  std::string path(const std::string& image = "disk") const {
    return "rbd/" + space_ + "/" + image;
  }
  std::shared_ptr<Pool> pool() const { return pool_; }
  RadosClient& client() const { return *client_; }
  Images images() const { return Images(pool_); }
  backend::Spec spec(const std::string& image = "disk") const {
    backend::Spec spec;
    spec.kind = "rbd";
    spec.path = path(image);
    spec.ceph = gateway_access();
    return spec;
  }

 private:
  std::string space_;
  std::shared_ptr<RadosClient> client_;
  std::shared_ptr<Pool> pool_;
};

}  // namespace sluice::rbd
