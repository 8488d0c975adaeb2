"""Critical paths as the timeline draws them: of one worker (path_pieces), and across ranks (cross_rank_pieces)."""
