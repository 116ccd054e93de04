def pytest_configure(config):
    config.addinivalue_line("markers", "kernels_ci: run by the build on every variant")
