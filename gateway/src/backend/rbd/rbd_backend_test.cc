#include "rbd/rbd_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <string>
#include <thread>

#include "backend/test_driver.h"
#include "base/limits.h"
#include "rbd/ceph_fixture.h"
#include "rbd/holder.h"

namespace sluice::rbd {
namespace {

using backend::Backend;
using backend::Bytes;
using backend::Driver;
using backend::Io;
using backend::Op;
using backend::pattern;
using testing::HasSubstr;

class RbdTest : public testing::Test {
 protected:
  void SetUp() override {
    install();
    ASSERT_NE(ceph.pool(), nullptr);
  }
  std::unique_ptr<Backend> open(const backend::Spec& spec) {
    auto opened = backend::open(spec);
    EXPECT_TRUE(opened.ok()) << opened.error();
    return opened ? std::move(*opened) : nullptr;
  }
  static std::string refusal(const backend::Spec& spec) {
    auto opened = backend::open(spec);
    return opened ? "was opened" : opened.error();
  }
  // Looks as the gateway does, until `holds`; a minute at most.
  template <class Condition>
  static bool comes_true(Backend& backend, Condition holds) {
    for (int i = 0; i < 6000; ++i) {
      const bool fine = backend.check().ok();
      if (holds(fine)) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
  // The client that serves this process's images.
  static std::string served_by() {
    return RadosClient::shared(gateway_access()).value()->addresses();
  }

  CephNamespace ceph;
};

TEST_F(RbdTest, AnImageWithObjectMapOrFastDiffIsRefusedWithTheFix) {
  ASSERT_EQ(
      admin("rbd create --size 8M --image-feature layering,exclusive-lock,object-map,fast-diff " +
            ceph.path("mapped")),
      0);
  EXPECT_THAT(refusal(ceph.spec("mapped")),
              HasSubstr("rbd feature disable " + ceph.path("mapped") + " fast-diff object-map"));
  ASSERT_EQ(admin("rbd feature disable " + ceph.path("mapped") + " fast-diff object-map"), 0);
  EXPECT_NE(open(ceph.spec("mapped")), nullptr);
}

TEST_F(RbdTest, AnImageWithoutExclusiveLockIsRefused) {
  ASSERT_EQ(admin("rbd create --size 8M --image-feature layering " + ceph.path("unlocked")), 0);
  EXPECT_THAT(refusal(ceph.spec("unlocked")),
              HasSubstr("rbd feature enable " + ceph.path("unlocked") + " exclusive-lock"));
}

TEST_F(RbdTest, ACacheEnabledByTheImageOrItsPoolIsRefused) {
  ASSERT_EQ(admin("rbd config image set " + ceph.path() + " rbd_cache true"), 0);
  EXPECT_THAT(refusal(ceph.spec()), HasSubstr("rbd config image rm " + ceph.path() + " rbd_cache"));
  ASSERT_EQ(admin("rbd config image rm " + ceph.path() + " rbd_cache"), 0);
  ASSERT_EQ(admin("rbd config pool set rbd rbd_cache true"), 0);
  EXPECT_THAT(refusal(ceph.spec()), HasSubstr("rbd config pool rm rbd rbd_cache"));
  ASSERT_EQ(admin("rbd config pool rm rbd rbd_cache"), 0);
  auto backend = open(ceph.spec());
  ASSERT_NE(backend, nullptr);
  EXPECT_FALSE(backend->write_cache());
  EXPECT_FALSE(backend->set_write_cache(true).ok());
}

TEST_F(RbdTest, RefusalsIncludeTheReason) {
  EXPECT_THAT(refusal(ceph.spec("none")),
              HasSubstr(ceph.path("none") + ": there is no such image"));
  backend::Spec spec = ceph.spec();
  spec.path = "nopool/disk";
  EXPECT_THAT(refusal(spec), HasSubstr("there is no pool nopool"));
  spec = ceph.spec();
  spec.size = 4096;
  EXPECT_THAT(refusal(spec), HasSubstr("holds 8MiB, more than size=4KiB"));
  spec = ceph.spec();
  spec.ceph.config_file = "/there/is/no/such.conf";
  EXPECT_THAT(refusal(spec), HasSubstr("can't read its configuration"));
}

TEST_F(RbdTest, AnImageGrowsToTheConfiguredSize) {
  backend::Spec spec = ceph.spec();
  spec.size = 2 * kImageSize;
  EXPECT_EQ(open(spec)->size_bytes(), 2 * kImageSize);
  EXPECT_EQ(ceph.images().adopt("disk").value(), 2 * kImageSize);
}

TEST_F(RbdTest, ABlocklistedClientFailsItsRequestsAndReopensAsAnotherClient) {
  auto backend = open(ceph.spec());
  ASSERT_NE(backend, nullptr);
  Driver driver(*backend);
  const Bytes data = pattern(0, 65536, 1);
  ASSERT_EQ(driver.write(0, data), 0);
  const std::string before = served_by();
  ASSERT_TRUE(ceph.client().blocklist(before).ok());
  // A disk learns of it with the first request that knows of it.
  Bytes back(4096);
  const auto read = [&] { return driver.submit(Op::kRead, 0, 4096, {{back.data(), 4096}}); };
  int64_t answer = read();
  for (int i = 0; i < 1000000 && answer == 4096; ++i) answer = read();
  EXPECT_EQ(answer, -ESHUTDOWN);
  EXPECT_EQ(read(), -ESHUTDOWN);
  EXPECT_EQ(driver.write(0, Bytes(4096)), -ESHUTDOWN);
  EXPECT_EQ(driver.flush(), -ESHUTDOWN);
  EXPECT_EQ(driver.discard(0, 4096), -ESHUTDOWN);
  ASSERT_TRUE(comes_true(*backend, [](bool fine) { return fine; })) << backend->check().error();
  EXPECT_EQ(driver.read(0, data.size()), data);
  EXPECT_EQ(driver.write(0, data), 0);
  EXPECT_NE(served_by(), before);
  // It was not forgiven, and a gateway could not do that.
  EXPECT_EQ(admin("ceph osd blocklist ls 2>&1 | grep -q " + before), 0);
  EXPECT_NE(admin("ceph --name client.gateway --keyring " + gateway_access().keyring_file +
                  " osd blocklist rm " + before),
            0);
}

// As a takeover goes: the next owner touches the image with the map that fences this client. From
// then on the very first question tells (DESIGN R2), and a gateway of a cluster doesn't come back.
TEST_F(RbdTest, ABlocklistedClientFailsTheFenceCheckOnceTheNextOwnerHasOpenedTheImage) {
  backend::Spec spec = ceph.spec();
  spec.reopen_after_fence = false;
  auto backend = open(spec);
  ASSERT_NE(backend, nullptr);
  Driver driver(*backend);
  EXPECT_EQ(driver.submit(Op::kCheckFence, 0, 0), 0);
  const std::string before = served_by();
  ASSERT_TRUE(ceph.client().blocklist(before).ok());
  ASSERT_TRUE(Image::open(ceph.pool(), "disk", Image::Access::kReadOnly).ok());
  EXPECT_EQ(driver.submit(Op::kCheckFence, 0, 0), -ESHUTDOWN);
  EXPECT_EQ(driver.submit(Op::kCheckFence, 0, 0), -ESHUTDOWN);
  EXPECT_THAT(backend->check().error(), HasSubstr("the control plane decides"));
  EXPECT_EQ(driver.write(0, Bytes(4096)), -ESHUTDOWN);
}

TEST_F(RbdTest, TheLockIsReleasedBeforeCloseCompletes) {
  const std::string locks = "sh -c '[ -n \"$(rbd lock ls " + ceph.path() + ")\" ]'";
  auto backend = open(ceph.spec());
  ASSERT_NE(backend, nullptr);
  EXPECT_EQ(admin(locks), 0);
  close_and_wait(*backend);
  EXPECT_NE(admin(locks), 0);
}

// In ten years, says the list of the blocklisted.
TEST_F(RbdTest, ADeadHolderIsPermanentlyBlocklistedBeforeItsLockIsAcquired) {
  auto other = new_client();
  auto pool = other->pool("rbd", ceph.space());
  ASSERT_TRUE(pool.ok()) << pool.error();
  auto held = Image::open(*pool, "disk", Image::Access::kOwned);
  ASSERT_TRUE(held.ok()) << held.error();
  // Of a process whose number is another's by now.
  Holder gone = Holder::self(other->addresses());
  ++gone.started;
  ASSERT_EQ(rbd_metadata_set((*held)->handle(), "sluice.holder", gone.text().c_str()), 0);
  auto backend = open(ceph.spec());
  ASSERT_NE(backend, nullptr);
  EXPECT_EQ(Driver(*backend).write(0, Bytes(4096)), 0);
  Bytes late(4096);
  EXPECT_EQ(rbd_write((*held)->handle(), 0, late.size(), reinterpret_cast<char*>(late.data())),
            -ESHUTDOWN);
  const std::time_t then = std::time(nullptr) + RadosClient::kForGood;
  const std::string year = std::to_string(1900 + std::localtime(&then)->tm_year);
  EXPECT_EQ(
      admin("sh -c 'ceph osd blocklist ls | grep \"^" + other->addresses() + " " + year + "\"'"),
      0);
}

TEST_F(RbdTest, ASecondOpenIsRefusedWithThePidOfTheHolder) {
  auto first = open(ceph.spec());
  ASSERT_NE(first, nullptr);
  backend::Spec second = ceph.spec();
  second.ceph.monitors = "";
  second.ceph.config_file = ceph_folder() + "/./ceph.conf";  // another client of the same cluster
  EXPECT_THAT(refusal(second), HasSubstr("is in use by process " + std::to_string(getpid())));
  EXPECT_TRUE(first->check().ok());
}

TEST_F(RbdTest, AnIdleBackendDetectsThatItIsBlocklisted) {
  auto backend = open(ceph.spec());
  ASSERT_NE(backend, nullptr);
  ASSERT_TRUE(comes_true(
      *backend, [](bool) { return RadosClient::shared(gateway_access()).value()->proven() != 0; }));
  ASSERT_TRUE(ceph.client().blocklist(served_by()).ok());
  EXPECT_TRUE(comes_true(*backend, [](bool fine) { return !fine; }));
  EXPECT_TRUE(comes_true(*backend, [](bool fine) { return fine; }));
}

TEST_F(RbdTest, ASizeChangedExternallyIsDetected) {
  auto backend = open(ceph.spec());
  ASSERT_NE(backend, nullptr);
  ASSERT_EQ(admin("rbd resize --size 16M " + ceph.path()), 0);
  EXPECT_TRUE(comes_true(
      *backend, [&](bool fine) { return fine && backend->size_bytes() == 2 * kImageSize; }));
  Driver driver(*backend);
  EXPECT_EQ(driver.write(2 * kImageSize - 4096, Bytes(4096)), 0);
  ASSERT_EQ(admin("rbd resize --allow-shrink --size 8M " + ceph.path()), 0);
  EXPECT_TRUE(comes_true(*backend, [](bool fine) { return !fine; }));
  EXPECT_THAT(backend->check().error(), HasSubstr("shrank from 16MiB to 8MiB"));
  EXPECT_EQ(backend->size_bytes(), 2 * kImageSize);
}

// Objects of the data, as Ceph counts them.
unsigned objects(const CephNamespace& ceph) {
  rados_list_ctx_t list = nullptr;
  EXPECT_EQ(rados_nobjects_list_open(ceph.pool()->context(), &list), 0);
  unsigned count = 0;
  const char* name = nullptr;
  while (rados_nobjects_list_next(list, &name, nullptr, nullptr) == 0) {
    if (std::string(name).starts_with("rbd_data.")) ++count;
  }
  rados_nobjects_list_close(list);
  return count;
}

TEST_F(RbdTest, DiscardFreesSpaceAndZerosWithoutUnmapRetainIt) {
  auto backend = open(ceph.spec());
  ASSERT_NE(backend, nullptr);
  Driver driver(*backend);
  ASSERT_EQ(driver.write(0, pattern(0, kImageSize, 1)), 0);
  const unsigned full = objects(ceph);
  EXPECT_EQ(full, 2u);  // of 4 MiB
  ASSERT_EQ(driver.write_zeroes(0, kImageSize), 0);
  EXPECT_EQ(objects(ceph), full);
  ASSERT_EQ(driver.discard(0, kImageSize), 0);
  EXPECT_EQ(objects(ceph), 0u);
  ASSERT_EQ(driver.write(0, pattern(0, kImageSize, 1)), 0);
  ASSERT_EQ(driver.write_zeroes(0, kImageSize / 2, backend::kIoMayUnmap), 0);
  EXPECT_EQ(objects(ceph), full / 2);
}

TEST_F(RbdTest, AClientWithManyImagesPollsThemLessOften) {
  const auto client = new_client();
  const auto tick = [&] {
    std::array<char, 32> text{};
    EXPECT_EQ(rados_conf_get(client->handle(), "objecter_tick_interval", text.data(), text.size()),
              0);
    return static_cast<Nanos>(std::stod(text.data()) * static_cast<double>(kSecond));
  };
  EXPECT_EQ(tick(), limits::kCephTick);
  for (unsigned images = 1; images <= 1000; ++images) {
    client->opened();
    if (tick() == limits::kCephTickOfMany) continue;
    ASSERT_LE(images, limits::kCephAsks * tick() / kSecond) << tick();
  }
  EXPECT_EQ(tick(), limits::kCephTickOfMany);
  for (unsigned images = 1000; images > 0; --images) client->closed();
  EXPECT_EQ(tick(), limits::kCephTick);
}

TEST_F(RbdTest, MoreRequestsThanTheLimitAreRefusedAsBusy) {
  auto backend = open(ceph.spec());
  ASSERT_NE(backend, nullptr);
  backend::TestAio aio;
  struct Request {
    Io io;
    Bytes data = Bytes(512);
    iovec iov{};
  };
  unsigned completed = 0;
  std::vector<Request> requests(limits::kMaxImageRequests + 1);
  for (size_t i = 0; i < requests.size(); ++i) {
    Request& request = requests[i];
    request.iov = {request.data.data(), 512};
    request.io.iov = &request.iov;
    request.io.iovcnt = 1;
    request.io.length = 512;
    request.io.context = &completed;
    request.io.done = [](Io& io) { *static_cast<unsigned*>(io.context) += io.result == 512; };
    const bool last = i == limits::kMaxImageRequests;
    ASSERT_EQ(backend->submit(request.io, aio), last);
  }
  EXPECT_EQ(requests.back().io.result, -EAGAIN);
  while (aio.pump()) {
  }
  EXPECT_EQ(completed, limits::kMaxImageRequests);
}

}  // namespace
}  // namespace sluice::rbd
