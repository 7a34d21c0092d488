// A reactor that stands still, under a clock that only the tests move (DESIGN R6).
#include "net/reactor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <future>
#include <string>
#include <thread>

#include "backend/device_threads.h"
#include "backend/test_storage.h"
#include "base/reactor_thread.h"

namespace sluice::net {
namespace {

std::atomic<Nanos> simulated_now{1000 * kSecond};
Nanos simulated_clock() { return simulated_now; }
void pass(Nanos span) { simulated_now += span; }

constexpr Nanos kTooLong = limits::kStallLimit + 1;

class StandingStill : public testing::Test {
 protected:
  void SetUp() override {
    Reactor::Setup setup;
    setup.memory = limits::kMinReactorMemory;
    setup.gateway = &gateway_;
    setup.clock = simulated_clock;
    reactor_ = std::make_unique<Reactor>(setup);
    const Result<void> up = reactor_->start();
    if (!up) {
      reactor_.reset();
      GTEST_SKIP() << up.error();
    }
    file_ = memfd_create("disk", MFD_CLOEXEC);
    ASSERT_EQ(ftruncate(file_, kBytes), 0);
  }
  void TearDown() override {
    if (reactor_ == nullptr) return;
    reactor_->stop(true);
    reactor_->join();
    close(file_);
  }

  // Where an operation runs.
  enum class By : uint8_t { kRing, kDevice };

  void submit(AioOp& op, By by) {
    if (by == By::kRing) return reactor_->aio().submit(op);
    reactor_->aio().submit_blocking(op, device_, nullptr);
  }

  // The results of `count` operations, one byte each, that were all submitted in one iteration. It
  // took `before` until then and `after` from then on.
  std::vector<int32_t> one_turn(AioOp::Kind kind, size_t count, Nanos before, Nanos after,
                                By by = By::kRing) {
    struct Batch {
      std::vector<AioOp> ops;
      std::vector<int32_t> results;
      std::promise<void> done;
    } batch;
    batch.ops.resize(count);
    iovec one{&byte_, 1};
    for (size_t i = 0; i < count; ++i) {
      AioOp& op = batch.ops[i];
      op.kind = kind;
      op.fd = file_;
      op.iov = &one;
      op.iovcnt = 1;
      op.offset = i;
      op.context = &batch;
      op.done = [](AioOp& self, int32_t result) {
        auto& mine = *static_cast<Batch*>(self.context);
        mine.results.push_back(result);
        if (mine.results.size() == mine.ops.size()) mine.done.set_value();
      };
    }
    reactor_->post([&] {
      pass(before);
      for (AioOp& op : batch.ops) submit(op, by);
      pass(after);
    });
    batch.done.get_future().wait();
    return batch.results;
  }
  std::string content(size_t bytes) const {
    std::string out(bytes, '?');
    EXPECT_EQ(pread(file_, out.data(), bytes, 0), static_cast<ssize_t>(bytes));
    return out;
  }

  static constexpr off_t kBytes = 4 * limits::kRingEntries;
  backend::DeviceThreads device_{4};
  iscsi::Gateway gateway_;
  std::unique_ptr<Reactor> reactor_;
  int file_ = -1;
  char byte_ = 'x';
};

TEST_F(StandingStill, AWriteSubmittedInTimeIsPerformed) {
  EXPECT_EQ(one_turn(AioOp::Kind::kWritev, 1, 0, limits::kStallLimit), std::vector<int32_t>{1});
  EXPECT_EQ(content(1), "x");
}

TEST_F(StandingStill, AWriteNotSubmittedInTimeIsCancelled) {
  EXPECT_EQ(one_turn(AioOp::Kind::kWritev, 3, 0, kTooLong), std::vector<int32_t>(3, -ECANCELED));
  EXPECT_EQ(content(3), std::string(3, '\0'));
  EXPECT_EQ(one_turn(AioOp::Kind::kWritev, 3, 0, 0), std::vector<int32_t>(3, 1)) << "it goes on";
}

TEST_F(StandingStill, AWriteIsPassedToTheDeviceInTimeOrNotAtAll) {
  EXPECT_EQ(one_turn(AioOp::Kind::kWritev, 3, 0, kTooLong, By::kDevice),
            std::vector<int32_t>(3, -ECANCELED));
  EXPECT_EQ(content(3), std::string(3, '\0'));
  EXPECT_EQ(one_turn(AioOp::Kind::kWritev, 3, 0, limits::kStallLimit, By::kDevice),
            std::vector<int32_t>(3, 1));
  EXPECT_EQ(content(3), "xxx");
  EXPECT_EQ(one_turn(AioOp::Kind::kReadv, 1, 0, kTooLong, By::kDevice), std::vector<int32_t>{1});
}

TEST_F(StandingStill, LateWritesThatOverflowTheRingAreCancelled) {
  constexpr size_t kMany = 3 * limits::kRingEntries;
  EXPECT_EQ(one_turn(AioOp::Kind::kWritev, kMany, kTooLong, 0),
            std::vector<int32_t>(kMany, -ECANCELED));
  EXPECT_EQ(content(kMany), std::string(kMany, '\0'));
}

TEST_F(StandingStill, ALateReadIsStillPerformed) {
  EXPECT_EQ(one_turn(AioOp::Kind::kReadv, 1, 0, kTooLong), std::vector<int32_t>{1});
}

// Discards of a device that ended, as the kernel counts them.
uint64_t discards_of(const std::string& device) {
  std::ifstream file("/sys/block/" + device.substr(device.rfind('/') + 1) + "/stat");
  uint64_t count = 0;
  for (int field = 0; field < 12; ++field) file >> count;  // Documentation/block/stat.rst
  return count;
}

TEST_F(StandingStill, ADiscardReachesTheDeviceAsADiscard) {
  backend::ScratchDirectory scratch("/var/tmp");
  backend::LoopDevice loop(scratch.file("backing.img"), 8 << 20);
  if (!loop.skip_reason().empty()) GTEST_SKIP() << loop.skip_reason();
  const int device = open(loop.path().c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(device, 0);
  std::promise<int32_t> result;
  AioOp op;
  op.kind = AioOp::Kind::kDiscard;
  op.fd = device;
  op.offset = 1 << 20;
  op.length = 2 << 20;
  op.context = &result;
  op.done = [](AioOp& self, int32_t r) {
    static_cast<std::promise<int32_t>*>(self.context)->set_value(r);
  };
  const uint64_t before = discards_of(loop.path());
  reactor_->post([&] { submit(op, By::kDevice); });
  EXPECT_EQ(result.get_future().get(), 0);
  close(device);
  EXPECT_GT(discards_of(loop.path()), before);
}

TEST_F(StandingStill, TheThreadOfAReactorIsMarkedAsOne) {
  std::promise<bool> marked;
  reactor_->post([&] { marked.set_value(ReactorThread::is_present()); });
  EXPECT_TRUE(marked.get_future().get());
  EXPECT_FALSE(ReactorThread::is_present());
}

TEST_F(StandingStill, OperationsCompletedByOtherThreadsEndOnceOnTheReactor) {
  constexpr int kThreads = 3;
  constexpr int kEach = 2000;
  struct Done {
    Reactor* reactor = nullptr;
    std::atomic<int> elsewhere = 0;
    std::vector<int32_t> results;
    std::promise<void> all;
  } seen;
  seen.reactor = reactor_.get();
  std::vector<AioOp> ops(size_t{kThreads} * kEach);
  for (AioOp& op : ops) {
    op.kind = AioOp::Kind::kExternal;
    op.context = &seen;
    op.done = [](AioOp& self, int32_t result) {
      auto& mine = *static_cast<Done*>(self.context);
      if (!mine.reactor->on_this_thread()) ++mine.elsewhere;
      mine.results.push_back(result);
      if (mine.results.size() == size_t{kThreads} * kEach) mine.all.set_value();
    };
  }
  std::promise<void> submitted;
  reactor_->post([&] {
    for (AioOp& op : ops) reactor_->aio().submit(op);
    submitted.set_value();
  });
  submitted.get_future().wait();
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = t * kEach; i < (t + 1) * kEach; ++i) {
        reactor_->aio().complete(ops[static_cast<size_t>(i)], i);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  seen.all.get_future().wait();
  EXPECT_EQ(seen.elsewhere, 0);
  // Those of one thread in their order, and none twice or lost.
  for (int t = 0; t < kThreads; ++t) {
    std::vector<int32_t> mine;
    for (const int32_t r : seen.results) {
      if (r / kEach == t) mine.push_back(r);
    }
    ASSERT_EQ(mine.size(), size_t{kEach});
    EXPECT_TRUE(std::is_sorted(mine.begin(), mine.end()));
  }
}

TEST_F(StandingStill, AStallClosesEveryConnection) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  std::promise<unsigned> open;
  reactor_->post([&] {
    reactor_->adopt(ends[0], {}, nullptr);
    open.set_value(reactor_->connections());
  });
  EXPECT_EQ(open.get_future().get(), 1u);
  reactor_->post([] { pass(kTooLong); });
  char byte = 0;
  EXPECT_EQ(read(ends[1], &byte, 1), 0) << "closed";
  close(ends[1]);
}

}  // namespace
}  // namespace sluice::net
