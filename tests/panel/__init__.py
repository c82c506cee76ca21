"""What a Reader sees and touches of the userscripts, in a real Chromium."""
